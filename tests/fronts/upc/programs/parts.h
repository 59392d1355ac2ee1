/* SPDX-License-Identifier: BSD-3-Clause */
extern shared[THREADS] int everywhere[THREADS * THREADS];
extern shared int common[];
shared int tentative;

int other_sum(void);
int other_hidden(void);
int plain(int number);

/* SPDX-License-Identifier: BSD-3-Clause */

/* A job that cannot be joined, then a job that the same process can join. */

#include <lapi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(holds)                                            \
  do {                                                            \
    if (!(holds)) {                                               \
      fprintf(stderr, "line %d: not so: %s\n", __LINE__, #holds); \
      return 1;                                                   \
    }                                                             \
  } while (0)

int main(void) {
  lapi_handle_t handle = 77;
  lapi_info_t info;
  char text[LAPI_MAX_ERR_STRING];
  memset(&info, 0, sizeof info);
  setenv("MOBIUS_SPIN_NS", "a while", 1);
  REQUIRE(LAPI_Init(&handle, &info) == LAPI_ERR_NO_ENVIRONMENT);
  REQUIRE(handle == 77);
  REQUIRE(LAPI_Msg_string(LAPI_ERR_NO_ENVIRONMENT, text) == LAPI_SUCCESS);
  REQUIRE(strstr(text, "MOBIUS_SPIN_NS") != NULL);
  unsetenv("MOBIUS_SPIN_NS");
  REQUIRE(LAPI_Init(&handle, &info) == LAPI_SUCCESS);
  REQUIRE(LAPI_Term(handle) == LAPI_SUCCESS);
  return 0;
}

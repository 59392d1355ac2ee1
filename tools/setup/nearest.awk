# SPDX-License-Identifier: BSD-3-Clause
#
# Reads one name per line; prints those nearest to `word` by edit distance (a swap of neighbours
# counts one), as 'a', 'b' or 'c'. Nothing when none is near: more than half the word differs.

function smaller(a, b) { return a < b ? a : b }

function distance(a, b,    i, j, cost, d) {
  for (i = 0; i <= length(a); i++) d[i, 0] = i
  for (j = 0; j <= length(b); j++) d[0, j] = j
  for (i = 1; i <= length(a); i++)
    for (j = 1; j <= length(b); j++) {
      cost = substr(a, i, 1) != substr(b, j, 1)
      d[i, j] = smaller(smaller(d[i - 1, j] + 1, d[i, j - 1] + 1), d[i - 1, j - 1] + cost)
      if (i > 1 && j > 1 && substr(a, i, 1) == substr(b, j - 1, 1) &&
          substr(a, i - 1, 1) == substr(b, j, 1))
        d[i, j] = smaller(d[i, j], d[i - 2, j - 2] + 1)
    }
  return d[length(a), length(b)]
}

BEGIN { best = int((length(word) + 1) / 2) }

{
  far = index($0, word) == 1 ? 0 : distance(word, $0)
  if (far > best) next
  if (far < best) found = 0
  best = far
  names[found++] = $0
}

END {
  for (i = 0; i < found; i++)
    line = line (i == 0 ? "" : i == found - 1 ? " or " : ", ") "'" names[i] "'"
  if (found) print line
}

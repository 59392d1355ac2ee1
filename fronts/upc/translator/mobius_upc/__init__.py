# SPDX-License-Identifier: BSD-3-Clause
"""Translates UPC 1.3 to C over `libmobius_upc`.

Three parts, each with an interface of its own:

- *parse*: `preprocess` runs `gcc -E`; `rewrite` turns the tokens of UPC into C that Clang accepts,
  each shared layout an address space; `frontend` has libclang parse that and gives a typed tree;
- *lower*: `lower` walks the tree and writes C over the run time;
- *print*: `printer` brings the lines of the result back to those of the source by `#line`.

`driver` is `mobupcc`. docs/fronts/upc.md says how a construct is added.
"""

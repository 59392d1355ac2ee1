# SPDX-License-Identifier: BSD-3-Clause
"""Uses libmobius through its symbols alone, as other languages do, in a job of one."""

import ctypes
import os
import sys


def main() -> int:
    """Returns 0 if put and get through symbols deliver the value."""
    for name in ("MOBIUS_JOB", "MOBIUS_RANK"):
        os.environ.pop(name, None)
    library = ctypes.CDLL(sys.argv[1])
    library.mob_mem_local.restype = ctypes.c_void_p
    library.mob_last_error.restype = ctypes.c_char_p
    memory = ctypes.c_void_p()
    value = ctypes.c_uint64()
    assert library.mob_put8(0, ctypes.c_void_p(4096), ctypes.c_uint64(1)) == -1  # MOB_ERR_STATE
    assert library.mob_init() == 0, library.mob_last_error()
    assert library.mob_mem_alloc(ctypes.c_size_t(4096), ctypes.byref(memory)) == 0
    address = library.mob_mem_local(memory)
    for attempt in range(3):  # the second time is the inlined path inside the symbol
        wanted = 0x0123456789ABCDEF + attempt
        assert library.mob_put8(0, ctypes.c_void_p(address + 8), ctypes.c_uint64(wanted)) == 0
        assert library.mob_flush(0) == 0
        assert library.mob_get8(0, ctypes.c_void_p(address + 8), ctypes.byref(value)) == 0
        assert value.value == wanted, hex(value.value)
    assert library.mob_put8(0, ctypes.c_void_p(address + 4089), ctypes.c_uint64(1)) == -4
    assert b"offset 4089" in library.mob_last_error(), library.mob_last_error()
    assert library.mob_finalize() == 0
    return 0


if __name__ == "__main__":
    sys.exit(main())

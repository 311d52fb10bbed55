"""Makes a child process obey file permissions, which root's processes do not."""

import ctypes
import os

_PR_CAPBSET_DROP = 24
_OVERRIDES = (1, 2)
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH"""


def obey_permissions():
    """Give up root's power over permissions in a child process; for `preexec_fn`."""
    if os.geteuid() == 0:
        for capability in _OVERRIDES:
            if ctypes.CDLL(None, use_errno=True).prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0):
                raise OSError(ctypes.get_errno(), "root may not give up its power over permissions here")

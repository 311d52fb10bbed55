"""Makes a child process obey the permissions of files, which those of root do not."""

import ctypes
import os

_PR_CAPBSET_DROP = 24
_OVERRIDES = (1, 2)
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH"""


def obey_permissions():
    """For `preexec_fn`: what the child runs has no power over permissions that its owner bits do not give it."""
    if os.geteuid() == 0:
        for capability in _OVERRIDES:
            if ctypes.CDLL(None, use_errno=True).prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0):
                raise OSError(ctypes.get_errno(), "root may not give up its power over permissions here")

"""The pace at which a program searches its objects for garbage in cycles."""

import gc


def collect_seldom() -> None:
    """Search for garbage at a pace for programs that import much and make millions of small objects.

    Nearly all of these are freed by reference counting. At Python's default pace, modules are searched dozens of times
    while more are imported, and the searches took a fifth of the time on real manuals.
    """
    gc.set_threshold(50_000, 20, 100)

"""Cutting list: how many boards an order needs, and what is left of them."""

from dataclasses import dataclass

KERF_MM = 3.2
"""What the panel saw PS-12 turns into dust with every cut."""

TRIM_MM = 15
"""Cut off both ends of every board, because of cracks."""


@dataclass(frozen=True)
class Cut:
    """One piece of an order."""

    name: str
    length_mm: float


def pack(cuts: list[Cut], board_mm: float) -> list[list[Cut]]:
    """Distribute pieces over boards, longest first, each onto the first board where it fits.

    Raises:
        ValueError: a piece is longer than a board.
    """
    usable = board_mm - 2 * TRIM_MM
    boards: list[list[Cut]] = []
    left: list[float] = []
    for cut in sorted(cuts, key=lambda piece: -piece.length_mm):
        if cut.length_mm > usable:
            raise ValueError(f"{cut.name} ({cut.length_mm} mm) does not fit on a board of {board_mm} mm")
        for index, rest in enumerate(left):
            if cut.length_mm + KERF_MM <= rest:
                boards[index].append(cut)
                left[index] = rest - cut.length_mm - KERF_MM
                break
        else:
            boards.append([cut])
            left.append(usable - cut.length_mm - KERF_MM)
    return boards


if __name__ == "__main__":
    table = [Cut("leg", 720)] * 4 + [Cut("long apron", 1960)] * 2 + [Cut("short apron", 760)] * 2
    for number, board in enumerate(pack(table, 2500), start=1):
        print(number, ", ".join(f"{cut.name} {cut.length_mm:g}" for cut in board))

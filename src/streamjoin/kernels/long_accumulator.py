"""Long accumulators: fixed-point numbers of many digits, for sums that never round (after Kulisch).

    limbs       int64 each, limb k of weight 2**(32 * k)
    value       an integer times a power of two; it touches three limbs
    carries     go up lazily: a limb has room for 2**28 digits of 32 bits before it must hand on
    reading     carry, take the leading 62 bits and whether anything is below, round to nearest, ties to even

Accumulators lie one after another in one array; each has two limbs above its highest digit, which take the carries.
"""

from __future__ import annotations

import math
from typing import Any, Final

from streamjoin.kernels.pairs import compiled

_DIGIT: Final = 32
_MASK: Final = (1 << 32) - 1


@compiled
def add_scaled(limbs: Any, first: int, amount: int, position: int, sign: int) -> None:
    """Add `sign * amount * 2**position` to the accumulator that begins at limb `first`.

    `abs(amount)` is below 2**55; at a position that is a multiple of 32 it may be any int64.
    """
    place, shift = first + (position >> 5), position & 31
    low = (amount & _MASK) << shift
    high = ((amount >> _DIGIT) << shift) + (low >> _DIGIT)
    limbs[place] += sign * (low & _MASK)
    limbs[place + 1] += sign * (high & _MASK)
    limbs[place + 2] += sign * (high >> _DIGIT)


@compiled
def carry(limbs: Any, first: int, width: int) -> None:
    """Bring every limb but the highest into 0 .. 2**32 - 1; the highest one has the sign of the whole."""
    for place in range(first, first + width - 1):
        over = limbs[place] >> _DIGIT
        limbs[place] -= over << _DIGIT
        limbs[place + 1] += over


@compiled
def magnitude(limbs: Any, first: int, width: int, out: Any) -> bool:
    """Write the digits of the absolute value of a carried accumulator; True where it is negative."""
    negative = bool(limbs[first + width - 1] < 0)
    borrow = 0
    for place in range(width):
        digit = limbs[first + place]
        if negative:
            digit = -digit - borrow
            borrow = 1 if digit < 0 else 0
            if borrow:
                digit += _MASK + 1
        out[place] = digit
    return negative


@compiled
def leading(digits: Any, width: int) -> tuple[int, int]:
    """`(word, exponent)`: the number is about `word * 2**exponent`, 2**61 <= word < 2**62, or word is 0.

    The lowest bit of the word is also set if any bit below it is: so rounding the word rounds the number.
    """
    top = width - 1
    while top >= 0 and digits[top] == 0:
        top -= 1
    if top < 0:
        return 0, 0
    highest = digits[top]
    bits = math.frexp(float(highest))[1]
    second = digits[top - 1] if top >= 1 else 0
    third = digits[top - 2] if top >= 2 else 0
    word = highest << (62 - bits)
    if bits <= 30:
        word |= (second << (30 - bits)) | (third >> (bits + 2))
        rest = third & ((1 << (bits + 2)) - 1)
    else:
        word |= second >> (bits - 30)
        rest = third | (second & ((1 << (bits - 30)) - 1))
    place = top - 3
    while rest == 0 and place >= 0:
        rest = digits[place]
        place -= 1
    if rest != 0:
        word |= 1
    return word, _DIGIT * top + bits - 62


@compiled
def scaled(value: float, exponent: int) -> float:
    """`value * 2**exponent`, in two steps because the power alone may be out of range."""
    half = exponent // 2
    return value * math.ldexp(1.0, half) * math.ldexp(1.0, exponent - half)


@compiled
def nearest_double(word: int, exponent: int) -> float:
    """The double nearest to what `leading` found, ties to even; infinite where it is too large."""
    kept, rest = word >> 9, word & 511
    if rest > 256 or (rest == 256 and kept & 1):
        kept += 1
    return scaled(float(kept), exponent + 9)

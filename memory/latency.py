"""How long something took, as counts in buckets whose bounds grow by the factor √2.

Bucket 0 holds what took up to 1 ms, bucket i what took up to 2 ** (i / 2) ms, the last one
what took longer than 1,024 ms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

LONGEST_MS = 1024.0
LAST = 21


def bucket_of(milliseconds: float) -> int:
    """Return the number of the bucket, 0 to `LAST`."""
    if milliseconds <= 1:
        return 0
    return min(math.ceil(round(2 * math.log2(milliseconds), 9)), LAST)


def bound_of(bucket: int) -> float:
    """Return the most milliseconds that a bucket below `LAST` holds."""
    return float(2 ** (bucket / 2))


def quantile(counts: Sequence[int], share: float) -> float | None:
    """Return what `share` of the times stay below, in milliseconds; None where there are none.

    Interpolated within a bucket, as if the logarithms of its times lay evenly: the true value
    lies in the same bucket, so the answer is off by less than the factor √2 either way. Below
    1 ms it is off by less than 1 ms; past `LONGEST_MS` it is only known that it is more.
    """
    wanted = share * sum(counts)
    if not wanted:
        return None
    below = 0
    for bucket, count in enumerate(counts):
        if count and below + count >= wanted:
            part = (wanted - below) / count
            if bucket == 0:
                return part
            return min(bound_of(bucket - 1) * 2 ** (part / 2), LONGEST_MS)
        below += count
    return LONGEST_MS

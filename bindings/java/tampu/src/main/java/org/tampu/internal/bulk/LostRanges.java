package org.tampu.internal.bulk;

import java.util.ArrayList;
import java.util.List;
import org.tampu.bulk.LostRange;

/**
 * Lost ranges of a transfer, in order and without overlaps. The same bytes may be reported again: a receiver repeats its
 * reports after a broken connection, and a long range may be found after parts of it.
 */
final class LostRanges {
    /** Ranges that a transfer remembers. Beyond it, a range is part of the one before it. */
    static final int MOST = 1024;

    private final List<LostRange> ranges = new ArrayList<>();

    /** Adds the parts of a range that are not known yet. */
    void add(LostRange range) {
        if (range.bytes() == 0) {
            addEmpty(range);
            return;
        }
        long from = range.from();
        long frames = range.frames();
        for (int at = 0; at < ranges.size() && from < range.to(); at++) {
            LostRange known = ranges.get(at);
            if (known.to() <= from) {
                continue;
            }
            long to = Math.min(range.to(), known.from());
            if (from < to) {
                at += insert(at, new LostRange(from, to, frames, range.cause()));
                frames = 0;
            }
            from = known.to();
        }
        if (from < range.to()) {
            insert(ranges.size(), new LostRange(from, range.to(), frames, range.cause()));
        }
    }

    /** Adds frames without bytes, unless they end a known range. */
    private void addEmpty(LostRange range) {
        int at = ranges.size();
        while (at > 0 && ranges.get(at - 1).from() > range.from()) {
            at--;
        }
        if (at == 0 || ranges.get(at - 1).to() < range.from()) {
            insert(at, range);
        }
    }

    /** Inserts a range; returns the number of new entries. */
    private int insert(int at, LostRange range) {
        if (ranges.size() < MOST) {
            ranges.add(at, range);
            return 1;
        }
        if (at > 0) {
            LostRange before = ranges.get(at - 1);
            ranges.set(at - 1, new LostRange(before.from(), range.to(), before.frames() + range.frames(), before.cause()));
        }
        return 0;
    }

    boolean isEmpty() {
        return ranges.isEmpty();
    }

    /** Returns the number of lost bytes. */
    long bytes() {
        return ranges.stream().mapToLong(LostRange::bytes).sum();
    }

    /** Returns the ranges. */
    List<LostRange> list() {
        return List.copyOf(ranges);
    }
}

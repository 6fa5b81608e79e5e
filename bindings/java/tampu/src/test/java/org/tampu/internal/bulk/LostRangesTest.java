package org.tampu.internal.bulk;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.BitSet;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.tampu.bulk.LostRange;

/** Ranges that are reported several times, in any order. */
class LostRangesTest {
    private static LostRange range(long from, long to) {
        return new LostRange(from, to, 1, 2);
    }

    @Test
    void aRangeAroundKnownOnesAddsWhatIsBetweenThem() {
        LostRanges lost = new LostRanges();
        lost.add(range(100, 200));
        lost.add(range(300, 400));
        lost.add(range(50, 350));
        lost.add(range(380, 500));
        assertEquals(List.of(new LostRange(50, 100, 1, 2), range(100, 200), new LostRange(200, 300, 0, 2), range(300, 400), range(400, 500)), lost.list());
        assertEquals(450, lost.bytes());
        lost.add(range(60, 490));
        assertEquals(450, lost.bytes());
    }

    @Test
    void framesWithoutBytesAreKeptOnce() {
        LostRanges lost = new LostRanges();
        lost.add(range(0, 0));
        lost.add(range(0, 0));
        lost.add(range(10, 20));
        lost.add(range(20, 20));
        assertEquals(List.of(range(0, 0), range(10, 20)), lost.list());
    }

    @Test
    void anyReportsGiveTheSameBytes() {
        long seed = System.nanoTime();
        Random random = new Random(seed);
        for (int run = 0; run < 1000; run++) {
            LostRanges lost = new LostRanges();
            BitSet bytes = new BitSet();
            for (int each = 0; each < 20; each++) {
                int from = random.nextInt(200);
                int to = from + 1 + random.nextInt(40);
                lost.add(range(from, to));
                bytes.set(from, to);
            }
            assertEquals(bytes.cardinality(), lost.bytes(), "seed " + seed);
            long last = 0;
            for (LostRange each : lost.list()) {
                assertEquals(true, each.from() >= last, "seed " + seed + ": " + lost.list());
                last = each.to();
            }
        }
    }

    @Test
    void tooManyRangesBecomeOne() {
        LostRanges lost = new LostRanges();
        for (int each = 0; each < LostRanges.MOST + 10; each++) {
            lost.add(range(10L * each, 10L * each + 5));
        }
        assertEquals(LostRanges.MOST, lost.list().size());
        assertEquals(10L * (LostRanges.MOST + 9) + 5, lost.list().get(LostRanges.MOST - 1).to());
    }
}

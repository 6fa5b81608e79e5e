package org.tampu.internal.bulk;

import java.nio.ByteBuffer;
import java.util.Arrays;

/** Frames that some receiver has not acknowledged, in order and without holes. No I/O. */
public final class SendWindow {
    /** Most frames, however short they are. */
    public static final int FRAMES = 8192;

    /** A frame with its payload; the region is null where the payload has memory of its own. */
    public record Framed(BulkFrame header, ByteBuffer bytes, Arena.Region region) {
        /** Makes a frame outside of the window's memory. */
        public static Framed of(BulkFrame header, ByteBuffer bytes) {
            return new Framed(header, bytes, null);
        }
    }

    private final int limit;
    private final Arena arena;
    private Framed[] ring = new Framed[256];
    private int count;
    private long first = 1;
    private long bytes;

    /** Makes a window of so many bytes of payload. */
    public SendWindow(int limit, int frame) {
        this.limit = limit;
        this.arena = new Arena(limit + frame);
    }

    /** Returns the memory of its payloads. */
    public Arena arena() {
        return arena;
    }

    /** Returns whether a payload of this length fits. A single one always does. */
    public boolean hasRoom(int length) {
        return count == 0 || bytes + length <= limit && count < FRAMES;
    }

    /** Adds the next frame. */
    public void push(Framed framed) {
        if (count == ring.length) {
            Framed[] longer = new Framed[2 * count];
            for (int index = 0; index < count; index++) {
                longer[(int) ((first + index) % longer.length)] = get(first + index);
            }
            ring = longer;
        }
        ring[(int) ((first + count) % ring.length)] = framed;
        count++;
        bytes += framed.bytes().remaining();
    }

    /** Returns the number of the first frame that is kept. */
    public long first() {
        return first;
    }

    /** Returns the number of the next frame. */
    public long end() {
        return first + count;
    }

    /** Returns a frame, or null if it is not kept. */
    public Framed get(long sequence) {
        return sequence < first || sequence >= end() ? null : ring[(int) (sequence % ring.length)];
    }

    /** Returns the bytes of payload from this frame on. */
    public long bytesFrom(long sequence) {
        if (sequence <= first) {
            return bytes;
        }
        Framed from = get(sequence);
        Framed last = get(end() - 1);
        if (from == null) {
            return 0;
        }
        if (from.header().transfer() == last.header().transfer() && from.header().kind() != BulkFrame.START) {
            // Within one transfer the offsets give the answer at once.
            return Math.max(0, last.header().offset() + last.bytes().remaining() - from.header().offset());
        }
        long sum = 0;
        for (long each = sequence; each < end(); each++) {
            sum += get(each).bytes().remaining();
        }
        return sum;
    }

    /** Returns whether a receiver with this acknowledgement is more than half of the allowed distance behind. */
    public boolean isFarBehind(long acked) {
        return bytesFrom(acked) >= limit / 2 || end() - acked >= FRAMES / 2;
    }

    /** Drops all frames before this one, which all receivers have. */
    public void release(long before) {
        while (count > 0 && first < before) {
            int index = (int) (first % ring.length);
            Framed framed = ring[index];
            ring[index] = null;
            bytes -= framed.bytes().remaining();
            first++;
            count--;
            if (framed.region() != null) {
                arena.release(framed.region());
            }
        }
        if (count == 0 && ring.length > FRAMES) {
            ring = Arrays.copyOf(ring, FRAMES);
        }
    }
}

package org.tampu.internal.bulk;

import java.nio.ByteBuffer;
import java.util.ArrayDeque;

/**
 * Memory of a window: one direct buffer, whose regions are taken and given back in order. A region that a thread still
 * writes to a socket stays, also after its frame was released.
 */
public final class Arena {
    /** A part of the memory. */
    public static final class Region {
        private final int from;
        private final ByteBuffer bytes;
        private int users;
        private boolean isReleased;

        private Region(int from, ByteBuffer bytes) {
            this.from = from;
            this.bytes = bytes;
        }

        /** Returns a view of its bytes. */
        public ByteBuffer bytes() {
            return bytes.duplicate();
        }
    }

    private final int size;
    private final ArrayDeque<Region> used = new ArrayDeque<>();
    private ByteBuffer memory;
    private int head;

    /** Makes an arena of this size, whose memory is taken with the first region. */
    public Arena(int size) {
        this.size = size;
    }

    /** Returns a region, or null without room. A single region of at most the arena's size always fits. */
    public Region take(int length) {
        if (memory == null) {
            memory = ByteBuffer.allocateDirect(size);
        }
        int from = head;
        if (used.isEmpty()) {
            from = 0;
        } else {
            int tail = used.peekFirst().from;
            if (head == tail || head < tail && length > tail - head) {
                return null;
            }
            if (head > tail && length > size - head) {
                if (length > tail) {
                    return null;
                }
                from = 0;
            }
        }
        Region region = new Region(from, memory.slice(from, length));
        head = from + length;
        used.add(region);
        return region;
    }

    /** Keeps a region for a thread that reads it. */
    public void use(Region region) {
        region.users++;
    }

    /** Ends the use by a thread. */
    public void unuse(Region region) {
        region.users--;
        reclaim();
    }

    /** Gives a region back. */
    public void release(Region region) {
        region.isReleased = true;
        reclaim();
    }

    private void reclaim() {
        while (!used.isEmpty() && used.peekFirst().isReleased && used.peekFirst().users == 0) {
            used.pollFirst();
        }
    }
}

package org.tampu.internal.ring;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.zip.CRC32C;

/**
 * The log rings of this process: one for each thread that logs, and one that further threads share.
 *
 * <p>A thread that ends leaves its ring without a word. The next thread that needs one looks for rings whose thread has
 * ended, before it makes a new one. So no finalizer and no thread is needed.
 */
public final class RingPool {
    /** Bytes before the payload in a caller's array. */
    public static final int HEADER = Ring.RECORD_HEADER;

    /** Longest payload of all, in bytes: longer ones are counted as lost. */
    private static final int LONGEST_PAYLOAD = 16 << 20;
    /** Longest wait for room, in ns, below Error and from Error on. */
    private static final long WAIT = 200_000;
    private static final long WAIT_GRAVE = 20_000_000;
    private static final int ERROR = 8;
    /** Bytes that may wait in files of their own; one record is always accepted. */
    private static final long LONG_BYTES = 8 << 20;

    private final RingFiles files;
    private final int maxRings;
    private final ThreadLocal<Ring> own = new ThreadLocal<>();
    private final List<Ring> rings = new ArrayList<>();
    private int search;
    private final ReentrantLock sharing = new ReentrantLock();
    private volatile Ring shared;
    /** Records for which there was no ring at all, by level. */
    private final AtomicLongArray unplaced = new AtomicLongArray(Ring.LEVELS);

    /** Makes the directory of this process's rings below {@code run}. */
    public RingPool(Path run, String domain, String source, String process, String host, int ringBytes, int maxRings)
            throws IOException {
        int size = Integer.highestOneBit(Math.max(4096, Math.min(ringBytes, 1 << 29)) * 2 - 1);
        this.files = new RingFiles(RunDirectory.rings(run, domain), domain, source, process, host, size);
        this.maxRings = maxRings;
    }

    /** Returns the directory of the rings. */
    public Path directory() {
        return files.directory;
    }

    /** Returns the incarnation of this process in this domain. */
    public Incarnation incarnation() {
        return files.incarnation;
    }

    /** Defines a call site; 0 if there is no room for its description. */
    public int defineSite(byte[] bytes) {
        return files.dictionary.define(Dictionary.SITE, bytes);
    }

    /** Defines a logger; 0 if there is no room for it. */
    public int defineVoice(byte[] bytes) {
        return files.dictionary.define(Dictionary.VOICE, bytes);
    }

    /** Defines the site of records that no call site made; 0 if there is no room for it. */
    public int defineMade(byte[] bytes) {
        return files.dictionary.define(Dictionary.MADE, bytes);
    }

    /**
     * Stores a record of the calling thread. The payload lies in {@code record} from {@link #HEADER} on, and the array
     * has 7 bytes more than that. Returns false if the record is lost, which is counted and will be reported.
     *
     * @param ticks time in ns of UTC, or 0 for now
     * @param thread name of another thread that the record is from, or null
     */
    public boolean write(byte[] record, int payload, int site, int voice, long ticks, int level, String thread) {
        Ring ring = own.get();
        if (ring == null) {
            ring = claim();
            if (ring == null) {
                return writeShared(record, payload, site, voice, ticks, level, thread);
            }
        }
        if (thread == null) {
            ring.nameThread(Thread.currentThread().getName(), true);
        } else {
            ring.nameThread(thread, thread.equals(Thread.currentThread().getName()));
        }
        return put(ring, record, payload, site, voice, ticks == 0 ? ring.clock.now() : ticks, level);
    }

    private boolean put(Ring ring, byte[] record, int payload, int site, int voice, long ticks, int level) {
        if (payload > ring.longest()) {
            return putLong(ring, record, payload, site, voice, ticks, level);
        }
        return ring.write(record, payload, site, voice, ticks, level, wait(level));
    }

    private static long wait(int level) {
        return level < ERROR ? WAIT : WAIT_GRAVE;
    }

    /** Stores a payload that is too long for the ring: in a file of its own, and a note in the ring. */
    private boolean putLong(Ring ring, byte[] record, int payload, int site, int voice, long ticks, int level) {
        if (payload <= LONGEST_PAYLOAD && ring.prepare(24, wait(level)) && hasRoom(payload, wait(level))) {
            CRC32C checksum = new CRC32C();
            checksum.update(record, HEADER, payload);
            ByteBuffer note = ByteBuffer.allocate(HEADER + 24).order(ByteOrder.nativeOrder()).position(HEADER);
            note.putInt(site).putInt(voice).putLong(payload).putInt((int) checksum.getValue());
            try {
                files.writeLong(ring.number, ring.position(), record, HEADER, payload);
                return ring.write(note.array(), 24, Ring.NOTE, Ring.LONG_NOTE, ticks, level, 0);
            } catch (IOException full) {
                // Counted below.
            }
        }
        ring.countLost(level, ticks);
        return false;
    }

    private boolean hasRoom(int payload, long waitNanos) {
        long begun = System.nanoTime();
        for (long waiting = files.longBytes(); waiting > 0 && waiting + payload > LONG_BYTES; waiting = files.longBytes()) {
            if (System.nanoTime() - begun >= waitNanos) {
                return false;
            }
            LockSupport.parkNanos(100_000);
        }
        return true;
    }

    /** Gives this thread a ring: one whose thread has ended, or a new one; null if there are enough. */
    private Ring claim() {
        synchronized (rings) {
            Ring ring = null;
            for (int tried = 0; tried < rings.size() && ring == null; tried++) {
                search = search + 1 < rings.size() ? search + 1 : 0;
                Ring candidate = rings.get(search);
                ring = candidate.isAbandoned() ? candidate : null;
            }
            if (ring == null && rings.size() < maxRings) {
                try {
                    ring = files.ring();
                    rings.add(ring);
                } catch (IOException full) {
                    return null;
                }
            }
            if (ring != null) {
                ring.take();
                own.set(ring);
            }
            return ring;
        }
    }

    private boolean writeShared(byte[] record, int payload, int site, int voice, long ticks, int level, String thread) {
        sharing.lock();
        try {
            if (shared == null) {
                shared = files.ring();
            }
            shared.nameThread(thread == null ? Thread.currentThread().getName() : thread, thread == null ? Ring.kernelId() : 0);
            return put(shared, record, payload, site, voice, ticks == 0 ? shared.clock.now() : ticks, level);
        } catch (IOException none) {
            unplaced.incrementAndGet(Math.min(level, Ring.LEVELS - 1));
            return false;
        } finally {
            sharing.unlock();
        }
    }

    private List<Ring> all() {
        synchronized (rings) {
            List<Ring> all = new ArrayList<>(rings);
            if (shared != null) {
                all.add(shared);
            }
            return all;
        }
    }

    /** Returns the number of rings in use and of their threads. */
    public int rings() {
        return all().size();
    }

    /** Returns the number of records that found no room. */
    public long lost() {
        long sum = 0;
        for (Ring ring : all()) {
            sum += ring.lost();
        }
        for (int level = 0; level < unplaced.length(); level++) {
            sum += unplaced.get(level);
        }
        return sum;
    }

    /** Waits until everything logged so far has been handed off; returns whether it has. */
    public boolean flush(long nanos) {
        List<Ring> all = all();
        long[] heads = all.stream().mapToLong(Ring::head).toArray();
        long begun = System.nanoTime();
        for (int at = 0; at < heads.length; ) {
            if (all.get(at).tail() >= heads[at]) {
                at++;
            } else if (System.nanoTime() - begun >= nanos) {
                return false;
            } else {
                LockSupport.parkNanos(1_000_000);
            }
        }
        return true;
    }

    /** States that this process ends in order. */
    public void ended() {
        files.ended();
    }
}

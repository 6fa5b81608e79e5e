package org.tampu.internal.ring;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.ref.WeakReference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.concurrent.locks.LockSupport;
import java.util.zip.CRC32C;

/**
 * The writing side of one ring: copies a finished record into the mapped file and publishes it with one release store.
 *
 * <p>Decision: a call compares its length with a limit that is at most a quarter of the ring away. The rest is rare
 * work: the drainer's position, notes that are due, room in the file. A record is built in the thread's own memory,
 * because Java cannot map the file twice in a row, and copied in one or two pieces.
 *
 * <p>Room in the file system is reserved by writing zeros ahead of the first round, because a store into a hole of a
 * full file system is a signal. Drainers see only what lies before the head, which moves after all its bytes are stored.
 *
 * <p>One thread at a time uses a ring. {@link RingPool} sees to it.
 */
final class Ring {
    static final int HEADER_LENGTH = 4096;
    /** Bytes before the payload of a record. */
    static final int RECORD_HEADER = 24;
    /** Levels are counted by ACS's number. */
    static final int LEVELS = 12;
    static final int NOTE = 0;
    static final int LONG_NOTE = 3;

    private static final int THREAD_NOTE = 1;
    private static final int LOSS_NOTE = 2;
    private static final int HEAD = 128;
    private static final int WAITED = 256;
    private static final int HIGH_WATER = 264;
    private static final int LOSS_FIRST = 272;
    private static final int LOSS_LAST = 280;
    private static final int LOST = 288;
    private static final int TAIL = 384;
    /** Longest name of a thread, in bytes. */
    private static final int NAME_LIMIT = 64;
    /** Bytes of the file that are reserved at a time. */
    private static final int PIECE = 128 << 10;

    private static final VarHandle WORD = MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());
    private static final VarHandle LONGS = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.nativeOrder());
    private static final boolean LITTLE = ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN;

    final int number;
    final Clock clock = new Clock();
    private final int size;
    private final MappedByteBuffer map;
    /** Open until all of it is reserved. */
    private RandomAccessFile file;
    private long reserved;
    /** Bytes ever written. */
    private long position;
    /** A record that ends before it needs no check. */
    private long limit;
    /** All records ever lost, and how many of them the last note counts. */
    private long lost;
    private long noted;
    /** The thread whose records come, as its note says. */
    private WeakReference<Thread> owner = new WeakReference<>(null);
    private int ownId;
    private String threadName;
    private int threadId;
    private boolean threadDue;
    /** Losses of the previous thread, which precede the note of the next. */
    private boolean owes;

    Ring(int number, int size, RandomAccessFile file, MappedByteBuffer map) {
        this.number = number;
        this.size = size;
        this.file = file;
        this.map = map;
    }

    /** Returns the fixed part of a ring's file. */
    static byte[] header(int number, long size, Incarnation incarnation) {
        ByteBuffer header = ByteBuffer.allocate(52).order(ByteOrder.nativeOrder());
        header.put("TAMPULRG".getBytes(StandardCharsets.US_ASCII)).putInt(0x01020304).putShort((short) 1).putShort((short) 0);
        header.putInt(HEADER_LENGTH).putInt(number).putLong(size).put(incarnation.toBytes());
        CRC32C checksum = new CRC32C();
        checksum.update(header.array(), 0, 48);
        return header.putInt((int) checksum.getValue()).array();
    }

    /** Returns the longest payload that fits. */
    int longest() {
        return size / 4 - RECORD_HEADER - 7;
    }

    /** Returns true if the thread that had this ring has ended. */
    boolean isAbandoned() {
        Thread thread = owner.get();
        return thread == null || !thread.isAlive();
    }

    /** Gives the ring to the calling thread. */
    void take() {
        Thread thread = Thread.currentThread();
        owner = new WeakReference<>(thread);
        ownId = kernelId();
        rename(thread.getName(), ownId);
    }

    /** Names the thread of the records from here on, unless it is named so already; {@code isOwn}: it is the ring's own. */
    void nameThread(String name, boolean isOwn) {
        if (name != threadName) {
            rename(name, isOwn ? ownId : 0);
        }
    }

    /** Names the thread of the records from here on, in a ring that many threads share. */
    void nameThread(String name, int id) {
        if (name != threadName || id != threadId) {
            rename(name, id);
        }
    }

    private void rename(String name, int id) {
        boolean isNew = !name.equals(threadName) || id != threadId;
        threadName = name;
        threadId = id;
        if (isNew) {
            owes |= lost != noted;
            threadDue = true;
            limit = position;
        }
    }

    /**
     * Stores a record. The payload lies in {@code record} from {@link #RECORD_HEADER} on; the array is long enough for
     * the record's padding. Returns false if there was no room in time: the record is counted then, and reported here.
     */
    boolean write(byte[] record, int payload, int site, int voice, long ticks, int level, long waitNanos) {
        int total = RECORD_HEADER + (payload + 7 & ~7);
        if (position + total > limit && !makeRoom(total, waitNanos)) {
            countLost(level, ticks);
            return false;
        }
        publish(record, payload, total, site, voice, ticks);
        return true;
    }

    /** Makes room for a note that {@link #write} stores next, so that its position is known; false counts nothing. */
    boolean prepare(int payload, long waitNanos) {
        int total = RECORD_HEADER + (payload + 7 & ~7);
        return position + total <= limit || makeRoom(total, waitNanos);
    }

    /** Returns the position of the next record. */
    long position() {
        return position;
    }

    /** Counts a record that its caller drops; it is reported before the next record. */
    void countLost(int level, long ticks) {
        if (lost == noted) {
            WORD.set(map, LOSS_FIRST, ticks);
        }
        WORD.set(map, LOSS_LAST, ticks);
        int at = LOST + 8 * Math.min(level, LEVELS - 1);
        WORD.setRelease(map, at, (long) WORD.get(map, at) + 1);
        lost++;
        limit = position;
    }

    /** Returns the number of records lost here. */
    long lost() {
        long sum = 0;
        for (int level = 0; level < LEVELS; level++) {
            sum += (long) WORD.getAcquire(map, LOST + 8 * level);
        }
        return sum;
    }

    /** Returns where complete records end. */
    long head() {
        return (long) WORD.getAcquire(map, HEAD);
    }

    /** Returns up to where records have been handed off. */
    long tail() {
        return (long) WORD.getAcquire(map, TAIL);
    }

    private void publish(byte[] record, int payload, int total, int site, int voice, long ticks) {
        long begin = position;
        LONGS.set(record, 0, ticks);
        LONGS.set(record, 8, pair(site, payload));
        LONGS.set(record, 16, pair(voice, (int) (begin >>> 3)));
        int at = (int) begin & size - 1;
        int before = Math.min(total, size - at);
        map.put(HEADER_LENGTH + at, record, 0, before);
        if (before < total) {
            map.put(HEADER_LENGTH, record, before, total - before);
        }
        position = begin + total;
        WORD.setRelease(map, HEAD, begin + total);
    }

    /** Two halves of a word, in the order in which they lie in memory. */
    private static long pair(int first, int second) {
        return LITTLE ? first & 0xffff_ffffL | (long) second << 32 : (long) first << 32 | second & 0xffff_ffffL;
    }

    private boolean makeRoom(int total, long waitNanos) {
        int need = total + due();
        if (room() < need && !waitFor(need, waitNanos) || !reserve(need)) {
            limit = position;
            return false;
        }
        writeDue();
        limit = position + Math.min(room(), size / 4);
        if (file != null) {
            limit = Math.min(limit, reserved);
        }
        return true;
    }

    private int room() {
        long used = position - tail();
        if (used > (long) WORD.get(map, HIGH_WATER)) {
            WORD.set(map, HIGH_WATER, used);
        }
        return (int) Math.max(0, size - Math.max(0, used));
    }

    private boolean waitFor(int need, long waitNanos) {
        WORD.set(map, WAITED, (long) WORD.get(map, WAITED) + 1);
        long begun = System.nanoTime();
        while (room() < need) {
            long left = waitNanos - (System.nanoTime() - begun);
            if (left <= 0) {
                return false;
            }
            if (left > 150_000 && !Thread.currentThread().isInterrupted()) {
                LockSupport.parkNanos(50_000);
            } else {
                Thread.onSpinWait();
            }
        }
        return true;
    }

    /** Reserves room in the file for the first round. */
    private boolean reserve(int need) {
        try {
            while (file != null && reserved < Math.min(size, position + need)) {
                byte[] zeros = new byte[(int) Math.min(PIECE, size - reserved)];
                file.seek(HEADER_LENGTH + reserved);
                file.write(zeros);
                reserved += zeros.length;
                if (reserved == size) {
                    file.close();
                    file = null;
                }
            }
            return true;
        } catch (IOException full) {
            return false;
        }
    }

    /** Returns the bytes of the notes that must precede the next record. */
    private int due() {
        int thread = threadDue ? RECORD_HEADER + 8 + NAME_LIMIT : 0;
        return thread + (lost != noted ? RECORD_HEADER + 16 + 8 * LEVELS : 0);
    }

    private void writeDue() {
        if (owes) {
            owes = false;
            writeLosses();
        }
        if (threadDue) {
            threadDue = false;
            byte[] name = cut(threadName.getBytes(StandardCharsets.UTF_8));
            ByteBuffer note = note(8 + NAME_LIMIT).putInt(threadId).putInt(name.length).put(name);
            publish(note.array(), 8 + name.length, RECORD_HEADER + 8 + (name.length + 7 & ~7), NOTE, THREAD_NOTE, clock.now());
        }
        writeLosses();
    }

    private void writeLosses() {
        if (lost == noted) {
            return;
        }
        int length = 16 + 8 * LEVELS;
        ByteBuffer note = note(length).putLong((long) WORD.get(map, LOSS_FIRST)).putLong((long) WORD.get(map, LOSS_LAST));
        for (int level = 0; level < LEVELS; level++) {
            note.putLong((long) WORD.get(map, LOST + 8 * level));
        }
        publish(note.array(), length, RECORD_HEADER + length, NOTE, LOSS_NOTE, clock.now());
        noted = lost;
    }

    private static ByteBuffer note(int length) {
        return ByteBuffer.allocate(RECORD_HEADER + length).order(ByteOrder.nativeOrder()).position(RECORD_HEADER);
    }

    /** Cuts a long name between characters. */
    private static byte[] cut(byte[] name) {
        if (name.length <= NAME_LIMIT) {
            return name;
        }
        int end = NAME_LIMIT;
        while ((name[end] & 0xc0) == 0x80) {
            end--;
        }
        return Arrays.copyOf(name, end);
    }

    /** Returns the kernel's number of the calling thread, or 0. */
    static int kernelId() {
        try {
            return Integer.parseInt(Files.readSymbolicLink(Path.of("/proc/thread-self")).getFileName().toString());
        } catch (IOException | RuntimeException unknown) {
            return 0;
        }
    }
}

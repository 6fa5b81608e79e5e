package org.tampu.internal.gateway;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;

/**
 * Frames that wait for one connection. The threads that add some write them in turns, and never hold the session's lock
 * meanwhile: a hub that does not read must stop neither the reading thread nor the one that watches the connection.
 */
final class Outgoing {
    /** Bytes of frames that are written at once. */
    private static final int CHUNK = 256 << 10;

    private final Object lock;
    private final Link link;
    private final Deque<Frame> frames = new ArrayDeque<>();
    private long added;
    private long taken;
    private boolean isWriting;
    private boolean isBroken;
    /** Threads that wait for their turn. */
    private int followers;
    /** Threads that wait for the end of a write. */
    private int waiters;

    Outgoing(Object lock, Link link) {
        this.lock = lock;
        this.link = link;
    }

    /** Adds a frame; the lock is held. {@link #drain} has to follow without it. */
    void add(Frame frame) {
        if (!isBroken) {
            frames.add(frame);
            added++;
        }
    }

    /** The connection has ended: nothing more is written; the lock is held. */
    void end() {
        isBroken = true;
        frames.clear();
        lock.notifyAll();
    }

    /**
     * Writes what waits, or leaves it to the thread that is writing. With {@code waits} it returns only when that thread
     * has come to the frames added so far. After a failure the reading thread still takes the rest of what the hub has
     * sent, such as its BYE, and connects again.
     */
    void drain(boolean waits) {
        // A channel is closed if a thread with this mark writes to it.
        boolean wasInterrupted = Thread.interrupted();
        long mine;
        synchronized (lock) {
            mine = waits ? added : 0;
        }
        for (List<Frame> next = turn(mine); next != null; next = turn(mine)) {
            write(next);
        }
        if (wasInterrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /** Writes what waits, and waits until nothing is being written. */
    void drainAll() {
        drain(true);
        boolean wasInterrupted = Thread.interrupted();
        synchronized (lock) {
            waiters++;
            while (isWriting && !isBroken) {
                wasInterrupted |= isInterruptedInWait();
            }
            waiters--;
        }
        if (wasInterrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private boolean isInterruptedInWait() {
        try {
            lock.wait();
            return false;
        } catch (InterruptedException interrupted) {
            return true;
        }
    }

    private List<Frame> turn(long mine) {
        boolean wasInterrupted = false;
        try {
            synchronized (lock) {
                while (true) {
                    boolean isDone = taken >= mine;
                    if (frames.isEmpty() || isDone && (isWriting || followers > 0)) {
                        return null;
                    }
                    if (!isWriting) {
                        isWriting = true;
                        return next();
                    }
                    followers++;
                    wasInterrupted |= isInterruptedInWait();
                    followers--;
                }
            }
        } finally {
            if (wasInterrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private List<Frame> next() {
        List<Frame> next = new ArrayList<>();
        long bytes = 0;
        do {
            Frame frame = frames.remove();
            bytes += Frame.HEADER + frame.body().length;
            next.add(frame);
            taken++;
        } while (!frames.isEmpty() && bytes + Frame.HEADER + frames.peek().body().length <= CHUNK);
        return next;
    }

    private void write(List<Frame> next) {
        boolean isWritten = false;
        try {
            link.write(encoded(next));
            isWritten = true;
        } catch (IOException lost) {
            // The session sends the frames again when it has resumed.
        } finally {
            synchronized (lock) {
                isWriting = false;
                if (!isWritten) {
                    end();
                } else if (followers + waiters > 0) {
                    lock.notifyAll();
                }
            }
        }
    }

    private static byte[] encoded(List<Frame> frames) {
        if (frames.size() == 1) {
            return frames.get(0).encode();
        }
        ByteBuffer all = ByteBuffer.allocate(frames.stream().mapToInt(frame -> Frame.HEADER + frame.body().length).sum());
        frames.forEach(frame -> all.put(frame.encode()));
        return all.array();
    }
}

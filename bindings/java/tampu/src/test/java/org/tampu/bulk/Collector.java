package org.tampu.bulk;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** A handler that keeps the last transfer, with steps that a test sets. */
class Collector implements BulkHandler {
    /** A step of a test within a call. */
    interface Step {
        void run() throws Exception;
    }

    final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    final List<LostRange> lost = new ArrayList<>();
    final BlockingQueue<End> ends = new LinkedBlockingQueue<>();
    final BlockingQueue<End> resets = new LinkedBlockingQueue<>();
    volatile String parameter = "";
    volatile int blocks;
    volatile long has;
    volatile Step atStart = () -> { };
    volatile Step atData = () -> { };
    volatile Step atStop = () -> { };

    @Override
    public long start(Start start) throws Exception {
        synchronized (bytes) {
            bytes.reset();
        }
        blocks = 0;
        parameter = new String(start.parameter());
        atStart.run();
        return has;
    }

    @Override
    public void data(ByteBuffer piece, long offset, boolean endOfBlock) throws Exception {
        byte[] copy = new byte[piece.remaining()];
        piece.get(copy);
        synchronized (bytes) {
            bytes.writeBytes(copy);
        }
        blocks += endOfBlock ? 1 : 0;
        atData.run();
    }

    @Override
    public void stop(End end) throws Exception {
        ends.add(end);
        atStop.run();
    }

    @Override
    public void reset(End end) {
        resets.add(end);
    }

    @Override
    public void lost(LostRange range) {
        lost.add(range);
    }

    byte[] bytes() {
        synchronized (bytes) {
            return bytes.toByteArray();
        }
    }

    static BulkHandler.End next(BlockingQueue<End> of) throws InterruptedException {
        End end = of.poll(30, TimeUnit.SECONDS);
        if (end == null) {
            throw new AssertionError("no end came");
        }
        return end;
    }
}

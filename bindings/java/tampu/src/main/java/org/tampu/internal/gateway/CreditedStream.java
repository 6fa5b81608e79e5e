package org.tampu.internal.gateway;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.tampu.gateway.GatewayException;
import org.tampu.internal.json.Json;

/**
 * A subscription as the gateway sees it: the queue, the credit, and the beginning anew after a restart of the hub.
 *
 * <p>A thread of the stream calls its reader. The hub sends no more than the credit ahead of it, so a slow reader makes
 * the hub wait.
 */
public final class CreditedStream implements AutoCloseable {
    /** The receiver of the frames. One thread makes all calls. */
    public interface Reader {
        /** Takes a frame. A failure ends the stream. */
        void take(Frame frame) throws GatewayException;

        /** The stream begins anew: its hub knows nothing of the frames before. */
        default void renewed() {}

        /** The stream has ended; nothing follows. The code is {@code done} if the program closed it. */
        void ended(GatewayException why);
    }

    private static final byte[] EMPTY = {};
    /** Kinds of entries of the queue that no hub sends to a stream. */
    private static final Frame RENEWED = new Frame(0, 0, 0, 0, EMPTY);
    private static final Frame OVER = new Frame(Frame.BYE, 0, 0, 0, EMPTY);

    private final Session session;
    private final Map<String, Object> request;
    private final long credit;
    private final Reader reader;
    /** Frames that the reader has not seen; their bytes are bounded by the credit. */
    private final BlockingQueue<Frame> frames = new LinkedBlockingQueue<>();
    private volatile int id;
    private volatile GatewayException end;
    private volatile boolean isClosing;
    /** Beginnings that the session has sent; it counts with its lock held. */
    private volatile int begun;
    /** Beginnings that the stream's thread has seen. */
    private int seen;
    private long taken;
    private long granted;

    /** Makes a stream; {@link #open} begins it. The request is the body of OPEN without the credit. */
    public CreditedStream(Session session, Map<String, Object> request, long credit, Reader reader) {
        this.session = session;
        this.request = new LinkedHashMap<>(request);
        this.request.put("credit", credit);
        this.credit = credit;
        this.granted = credit;
        this.reader = reader;
    }

    /** Begins the stream, with a thread of this name. */
    public void open(String threadName) throws GatewayException {
        id = session.open(new Handler(), own -> Frame.of(Frame.OPEN, own, request));
        Thread thread = new Thread(this::run, threadName);
        thread.setDaemon(true);
        thread.start();
    }

    private final class Handler implements Session.Handler {
        @Override
        public void take(Frame frame) {
            if (frame.kind() == Frame.ENDED) {
                // At once: a session that begins anew would open the stream again.
                session.forget(frame.id());
            }
            frames.add(frame);
        }

        @Override
        public Frame renew(int own) {
            if (isClosing) {
                return null;
            }
            begun++;
            frames.add(RENEWED);
            return Frame.of(Frame.OPEN, own, request);
        }

        @Override
        public void ended(GatewayException why) {
            end = why;
            frames.add(OVER);
        }
    }

    private void run() {
        GatewayException why = null;
        try {
            while (why == null && !isClosing) {
                Frame frame = frames.take();
                switch (frame.kind()) {
                    case 0 -> renewed();
                    case Frame.ENDED -> {
                        // The hub has forgotten the stream, so it needs no CLOSE.
                        isClosing = true;
                        why = failure(frame.json());
                    }
                    case Frame.BYE -> why = end;
                    default -> {
                        reader.take(frame);
                        used(frame);
                    }
                }
            }
        } catch (InterruptedException interrupted) {
            why = new GatewayException("interrupted", "the thread of the subscription was interrupted");
        } catch (GatewayException lost) {
            why = lost;
        } catch (RuntimeException broken) {
            why = new GatewayException("failed", "the subscription ended: " + broken);
        }
        if (why != null && end == null) {
            close();
        }
        reader.ended(why == null ? new GatewayException("done", "the subscription is closed") : why);
    }

    private static GatewayException failure(Map<String, Object> body) {
        return new GatewayException(Json.text(body, "code", "done"), Json.text(body, "error", "the subscription ended"));
    }

    private void renewed() {
        seen++;
        taken = 0;
        granted = credit;
        reader.renewed();
    }

    /** Grants credit for a frame that the reader has seen. */
    private void used(Frame frame) throws GatewayException {
        if (frame.kind() != Frame.DATA && frame.kind() != Frame.EVENTS) {
            return;
        }
        taken += frame.body().length;
        if (granted - taken < credit / 2) {
            granted = taken + credit;
            // Another session has another count, which begins at the entry in the queue.
            session.sendIf(Frame.of(Frame.CREDIT, id, granted), () -> begun == seen);
        }
    }

    /** Returns whether the stream was closed, so that nothing more is wanted. */
    public boolean isClosing() {
        return isClosing;
    }

    /** Ends the stream; the reader gets nothing more after its present call. */
    @Override
    public void close() {
        if (!isClosing) {
            isClosing = true;
            try {
                session.send(new Frame(Frame.CLOSE, 0, id, 0, EMPTY));
            } catch (GatewayException over) {
                // The session has ended, and the stream with it.
            }
            frames.add(OVER);
        }
    }
}

package org.tampu.event;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.function.Consumer;
import org.tampu.gateway.GatewayException;
import org.tampu.internal.gateway.Frame;
import org.tampu.internal.gateway.Session;
import org.tampu.internal.json.Json;

/**
 * A subscription to attributes. Its own thread calls the program; a slow program gets the hub to wait, and what the hub
 * cannot keep comes as a notice {@code gap}.
 */
public final class Subscription implements AutoCloseable {
    /** Bytes of events that may be on their way. */
    private static final long CREDIT = 4 << 20;

    private record Known(String name, String source, String incarnation, Map<String, Object> config) {}

    private final Session session;
    private final Map<String, Object> request;
    private final Consumer<Delivery> program;
    private final Consumer<GatewayException> end;
    /** Frames that the program has not seen; their bytes are bounded by the credit. */
    private final BlockingQueue<Frame> frames = new LinkedBlockingQueue<>();
    private final Map<Integer, Known> attributes = new HashMap<>();
    private final int id;
    private volatile GatewayException ended;
    private volatile boolean closing;
    private long taken;
    private long granted;

    Subscription(Session session, Map<String, Object> request, Consumer<Delivery> program, Consumer<GatewayException> end)
            throws GatewayException {
        this.session = session;
        this.request = request;
        this.program = program;
        this.end = end;
        request.put("credit", CREDIT);
        this.granted = CREDIT;
        this.id = session.open(new Taker(), each -> Frame.of(Frame.OPEN, each, request));
        Thread thread = new Thread(this::run, "tampu-events");
        thread.setDaemon(true);
        thread.start();
    }

    private final class Taker implements Session.Handler {
        @Override
        public void take(Frame frame) {
            frames.add(frame);
        }

        @Override
        public Frame renew(int own) {
            // The hub was restarted: the current values come again, and what was between is unknown.
            frames.add(new Frame(0, 0, 0, 0, new byte[0]));
            return Frame.of(Frame.OPEN, own, request);
        }

        @Override
        public void ended(GatewayException why) {
            ended = why;
            frames.add(new Frame(Frame.BYE, 0, 0, 0, new byte[0]));
        }
    }

    private void run() {
        GatewayException why = null;
        try {
            while (why == null && !closing) {
                Frame frame = frames.take();
                switch (frame.kind()) {
                    case 0 -> {
                        taken = 0;
                        granted = CREDIT;
                        attributes.clear();
                    }
                    case Frame.ATTRIBUTE -> learn(frame.json());
                    case Frame.NOTICE -> notice(frame.json());
                    case Frame.EVENTS -> events(frame.body());
                    case Frame.ENDED -> {
                        session.forget(frame.id());
                        Map<String, Object> body = frame.json();
                        why = new GatewayException(Json.text(body, "code", "done"), Json.text(body, "error", "the subscription ended"));
                    }
                    case Frame.BYE -> why = ended;
                    default -> { }
                }
            }
        } catch (InterruptedException interrupted) {
            why = new GatewayException("interrupted", "the thread of the subscription was interrupted");
        } catch (GatewayException lost) {
            why = lost;
        } catch (RuntimeException broken) {
            why = new GatewayException("failed", "the subscription ended: " + broken);
            close();
        }
        end.accept(why == null ? new GatewayException("done", "the subscription is closed") : why);
    }

    private void learn(Map<String, Object> body) {
        @SuppressWarnings("unchecked")
        Map<String, Object> config = body.get("config") instanceof Map<?, ?> map ? (Map<String, Object>) map : Map.of();
        attributes.put((int) Json.number(body, "attribute", 0), new Known(Json.text(config, "name", ""), Json.text(body, "source", ""),
                Json.text(body, "incarnation", ""), config));
    }

    private void notice(Map<String, Object> body) {
        Known known = attributes.get((int) Json.number(body, "attribute", 0));
        if (known == null) {
            return;
        }
        long from = 0;
        long to = 0;
        if (body.get("missed") instanceof List<?> missed && missed.size() == 2) {
            from = Long.parseUnsignedLong(String.valueOf(missed.get(0)));
            to = Long.parseUnsignedLong(String.valueOf(missed.get(1)));
        }
        boolean unknown = "unknown".equals(body.get("missed"));
        String reason = Json.text(body, "reason", "");
        if (reason.equals("source died") || reason.equals("source left")) {
            attributes.remove((int) Json.number(body, "attribute", 0));
        }
        program.accept(new Delivery(known.name, known.source, known.incarnation, known.config, reason, null, from, to, unknown));
    }

    private void events(byte[] body) throws GatewayException {
        ByteBuffer all = ByteBuffer.wrap(body).order(ByteOrder.LITTLE_ENDIAN);
        while (all.remaining() >= 32 && !closing) {
            int begin = all.position();
            int length = all.getInt(begin);
            if (length < 0 || length > all.remaining() - 32) {
                throw new GatewayException("protocol", "an event of " + length + " bytes in a body that ends before");
            }
            Known known = attributes.get(all.getInt(begin + 4));
            String reason = switch (all.get(begin + 8)) {
                case 0 -> "first";
                case 2 -> "resumed";
                default -> "update";
            };
            if (known != null) {
                ByteBuffer sample = all.duplicate().position(begin + 32).limit(begin + 32 + length);
                program.accept(new Delivery(known.name, known.source, known.incarnation, known.config, reason,
                        EventCodec.decode(sample), 0, 0, all.get(begin + 9) != 0));
            }
            all.position(Math.min(all.limit(), begin + 32 + (length + 7 & ~7)));
        }
        taken += body.length;
        if (granted - taken < CREDIT / 2) {
            granted = taken + CREDIT;
            session.send(Frame.of(Frame.CREDIT, id, granted));
        }
    }

    /** Ends the subscription; the program gets nothing more after its present call. */
    @Override
    public void close() {
        if (!closing) {
            closing = true;
            try {
                session.send(new Frame(Frame.CLOSE, 0, id, 0, new byte[0]));
            } catch (GatewayException over) {
                // The session has ended, and the subscription with it.
            }
            frames.add(new Frame(Frame.BYE, 0, 0, 0, new byte[0]));
        }
    }
}

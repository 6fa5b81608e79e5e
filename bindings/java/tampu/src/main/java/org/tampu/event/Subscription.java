package org.tampu.event;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.tampu.gateway.GatewayException;
import org.tampu.internal.gateway.CreditedStream;
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

    private record Known(String name, String source, String incarnation, Map<String, Object> config,
            AttributeProgress.Life life) {}

    private final Consumer<Delivery> program;
    private final CreditedStream stream;
    private final Map<Integer, Known> attributes = new HashMap<>();
    private final AttributeProgress progress = new AttributeProgress();

    Subscription(Session session, Map<String, Object> request, Consumer<Delivery> program, Consumer<GatewayException> end)
            throws GatewayException {
        this.program = program;
        stream = new CreditedStream(session, request, CREDIT, new CreditedStream.Reader() {
            @Override
            public void take(Frame frame) throws GatewayException {
                switch (frame.kind()) {
                    case Frame.ATTRIBUTE -> learn(frame.json());
                    case Frame.NOTICE -> notice(frame.json());
                    case Frame.EVENTS -> events(frame.body());
                    default -> { }
                }
            }

            @Override
            public void renewed() {
                // The current values come again, and their numbers say what was missed.
                attributes.clear();
                progress.renewed();
            }

            @Override
            public void ended(GatewayException why) {
                end.accept(why);
            }
        });
        stream.open("tampu-events");
    }

    private void learn(Map<String, Object> body) {
        @SuppressWarnings("unchecked")
        Map<String, Object> config = body.get("config") instanceof Map<?, ?> map ? (Map<String, Object>) map : Map.of();
        String name = Json.text(config, "name", "");
        String incarnation = Json.text(body, "incarnation", "");
        attributes.put((int) Json.number(body, "attribute", 0),
                new Known(name, Json.text(body, "source", ""), incarnation, config, progress.of(name, incarnation)));
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
            known.life.gap(to);
        }
        boolean unknown = "unknown".equals(body.get("missed"));
        String reason = Json.text(body, "reason", "");
        if (reason.equals("source died") || reason.equals("source left")) {
            attributes.remove((int) Json.number(body, "attribute", 0));
            known.life.ended();
        }
        deliver(known, reason, null, new AttributeProgress.Missed(from, to, unknown));
    }

    private void deliver(Known known, String reason, Event event, AttributeProgress.Missed missed) {
        program.accept(new Delivery(
                known.name, known.source, known.incarnation, known.config, reason, event, missed.from(), missed.to(), missed.unknown()));
    }

    private void events(byte[] body) throws GatewayException {
        ByteBuffer all = ByteBuffer.wrap(body).order(ByteOrder.LITTLE_ENDIAN);
        while (all.remaining() >= 32 && !stream.isClosing()) {
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
                Event event = EventCodec.decode(sample);
                boolean mayMiss = all.get(begin + 9) != 0;
                AttributeProgress.Missed missed = known.life.event(event.number());
                if (missed != null && missed.to() != 0) {
                    deliver(known, "gap", null, missed);
                }
                deliver(known, missed == null ? reason : "resumed", event,
                        mayMiss || missed != null && missed.unknown() ? AttributeProgress.UNKNOWN : AttributeProgress.NOTHING);
            }
            all.position(Math.min(all.limit(), begin + 32 + (length + 7 & ~7)));
        }
    }

    /** Ends the subscription; the program gets nothing more after its present call. */
    @Override
    public void close() {
        stream.close();
    }
}

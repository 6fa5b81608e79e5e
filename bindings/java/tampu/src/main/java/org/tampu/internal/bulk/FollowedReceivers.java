package org.tampu.internal.bulk;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import org.tampu.bulk.BulkTarget;
import org.tampu.bulk.Protection;
import org.tampu.gateway.GatewayException;
import org.tampu.internal.gateway.CreditedStream;
import org.tampu.internal.gateway.Frame;
import org.tampu.internal.gateway.Session;
import org.tampu.internal.json.Json;
import org.tampu.internal.ring.Incarnation;

/** The receivers of a stream that the bus announces, through a session of the gateway. A thread of its own reads. */
public final class FollowedReceivers implements AutoCloseable {
    private static final long CREDIT = 1 << 20;
    private static final int HEADER = 72;

    private final Session session;
    private final SendFlow flow;
    private final CreditedStream stream;
    /** Targets of receivers by incarnation and number. */
    private final Map<String, BulkTarget> known = new HashMap<>();

    /** Follows the stream of this flow. */
    public FollowedReceivers(Session session, SendFlow flow) throws GatewayException {
        this.session = session;
        this.flow = flow;
        // A hub that was restarted sends again the declarations that it holds.
        Map<String, Object> request = Map.of("topics", List.of("bulk-receivers"), "from", "held");
        stream = new CreditedStream(session, request, CREDIT, new CreditedStream.Reader() {
            @Override
            public void take(Frame frame) {
                switch (frame.kind()) {
                    case Frame.DATA -> data(frame.body());
                    case Frame.LIFE -> life(frame.json());
                    default -> { }
                }
            }

            @Override
            public void ended(GatewayException why) {
                // Connections to known receivers stay.
                if (why.code().equals("failed")) {
                    System.err.println("tampu: new receivers are no longer followed: " + why.getMessage());
                }
            }
        });
        stream.open("tampu-bulk-follow");
    }

    private void data(byte[] body) {
        ByteBuffer bytes = ByteBuffer.wrap(body).order(ByteOrder.LITTLE_ENDIAN);
        if (bytes.remaining() < HEADER) {
            return;
        }
        Incarnation incarnation = new Incarnation(bytes.getInt(16), bytes.getInt(20), bytes.getLong(24));
        bytes.position(Math.min(bytes.limit(), Short.toUnsignedInt(bytes.getShort(4))));
        while (bytes.remaining() >= 4) {
            int length = bytes.getInt();
            if (length < 0 || length > bytes.remaining()) {
                return;
            }
            byte[] sample = new byte[length];
            bytes.get(sample);
            bytes.position(Math.min(bytes.limit(), bytes.position() + (-length & 3)));
            try {
                declared(incarnation, Json.object(new String(sample, StandardCharsets.UTF_8)));
            } catch (IllegalArgumentException malformed) {
                // A declaration of a later release; its receiver cannot be reached.
            }
        }
    }

    private void declared(Incarnation incarnation, Map<String, Object> declaration) {
        if (!folded(Json.text(declaration, "stream", "")).equals(folded(flow.settings.stream()))) {
            return;
        }
        long receiver = Json.number(declaration, "receiver", 0);
        String key = incarnation + "/" + receiver;
        Optional<Map<?, ?>> declared = declaration.get("flows") instanceof List<?> flows ? flows.stream()
                .<Map<?, ?>>mapMulti((each, found) -> {
                    if (each instanceof Map<?, ?> one && folded(String.valueOf(one.get("name"))).equals(folded(flow.settings.flow()))) {
                        found.accept(one);
                    }
                }).findFirst() : Optional.empty();
        if (declared.isPresent()) {
            BulkTarget target = BulkTarget.parse(Json.text(declaration, "target", ""));
            Object protection = declared.get().get("protection");
            known.put(key, target);
            PassOffice passes = new PassOffice(session, incarnation, receiver);
            flow.add(target.toString(), target, Protection.declared(protection == null ? null : protection.toString()), passes);
        } else {
            forget(key);
        }
    }

    private static String folded(String name) {
        return name.toLowerCase(Locale.ROOT);
    }

    private void life(Map<String, Object> life) {
        String state = Json.text(life, "state", "");
        if (state.equals("left") || state.equals("died")) {
            String of = Json.text(life, "incarnation", "") + "/";
            List.copyOf(known.keySet()).stream().filter(key -> key.startsWith(of)).forEach(this::forget);
        }
    }

    private void forget(String key) {
        BulkTarget target = known.remove(key);
        // A restarted hub knows the receiver by another incarnation of its session.
        if (target != null && known.values().stream().noneMatch(one -> one.toString().equals(target.toString()))) {
            flow.remove(target.toString());
        }
    }

    /** Ends the following; connections stay. */
    @Override
    public void close() {
        stream.close();
    }
}

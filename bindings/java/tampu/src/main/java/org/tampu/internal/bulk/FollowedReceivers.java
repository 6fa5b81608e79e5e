package org.tampu.internal.bulk;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.tampu.bulk.BulkTarget;
import org.tampu.gateway.GatewayException;
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
    private final BlockingQueue<Frame> frames = new LinkedBlockingQueue<>();
    /** Targets of receivers by incarnation and number. */
    private final Map<String, BulkTarget> known = new HashMap<>();
    private final int id;
    private volatile boolean isClosing;
    private long taken;
    private long granted = CREDIT;

    /** Follows the stream of this flow. */
    public FollowedReceivers(Session session, SendFlow flow) throws GatewayException {
        this.session = session;
        this.flow = flow;
        Map<String, Object> request = Map.of("topics", List.of("bulk-receivers"), "from", "held", "credit", CREDIT);
        id = session.open(new Session.Handler() {
            @Override
            public void take(Frame frame) {
                frames.add(frame);
            }

            @Override
            public Frame renew(int own) {
                // The hub was restarted: what it holds comes again.
                frames.add(new Frame(0, 0, 0, 0, new byte[0]));
                return Frame.of(Frame.OPEN, own, request);
            }

            @Override
            public void ended(GatewayException why) {
                frames.add(new Frame(Frame.BYE, 0, 0, 0, new byte[0]));
            }
        }, own -> Frame.of(Frame.OPEN, own, request));
        Thread thread = new Thread(this::run, "tampu-bulk-follow");
        thread.setDaemon(true);
        thread.start();
    }

    private void run() {
        try {
            while (!isClosing) {
                Frame frame = frames.take();
                switch (frame.kind()) {
                    case 0 -> {
                        taken = 0;
                        granted = CREDIT;
                    }
                    case Frame.DATA -> data(frame.body());
                    case Frame.LIFE -> life(frame.json());
                    case Frame.BYE, Frame.ENDED -> isClosing = true;
                    default -> { }
                }
            }
        } catch (InterruptedException | GatewayException over) {
            // Connections to known receivers stay.
        }
    }

    private void data(byte[] body) throws GatewayException {
        taken += body.length;
        if (granted - taken < CREDIT / 2) {
            granted = taken + CREDIT;
            session.send(Frame.of(Frame.CREDIT, id, granted));
        }
        ByteBuffer bytes = ByteBuffer.wrap(body).order(ByteOrder.LITTLE_ENDIAN);
        if (bytes.remaining() < HEADER) {
            return;
        }
        String incarnation = new Incarnation(bytes.getInt(16), bytes.getInt(20), bytes.getLong(24)).toString();
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

    private void declared(String incarnation, Map<String, Object> declaration) {
        if (!folded(Json.text(declaration, "stream", "")).equals(folded(flow.settings.stream()))) {
            return;
        }
        String key = incarnation + "/" + Json.number(declaration, "receiver", 0);
        boolean hasFlow = declaration.get("flows") instanceof List<?> flows && flows.stream().anyMatch(each -> each instanceof Map<?, ?> one
                && folded(String.valueOf(one.get("name"))).equals(folded(flow.settings.flow())));
        if (hasFlow) {
            BulkTarget target = BulkTarget.parse(Json.text(declaration, "target", ""));
            known.put(key, target);
            flow.add(target.toString(), target);
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
        if (!isClosing) {
            isClosing = true;
            try {
                session.send(new Frame(Frame.CLOSE, 0, id, 0, new byte[0]));
            } catch (GatewayException over) {
                // The session has ended, and the subscription with it.
            }
            frames.add(new Frame(Frame.BYE, 0, 0, 0, new byte[0]));
        }
    }
}

package org.tampu.internal.bulk;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.tampu.gateway.GatewayException;
import org.tampu.internal.gateway.Frame;
import org.tampu.internal.gateway.Session;
import org.tampu.internal.json.Json;

/** Announcement of a receiver on the bus, through a session of the gateway. */
public final class Announcement implements AutoCloseable {
    private static final AtomicInteger NEXT = new AtomicInteger(1);
    private static final Map<String, Object> DECLARE = Map.of("topic", "bulk-receivers", "type", 8, "version", 1, "receipts", "none");

    private final Session session;
    private final int number = NEXT.getAndIncrement();
    private final String stream;
    private final String target;
    private final int id;

    /** Announces it. */
    public Announcement(Session session, String stream, String target, List<String> flows) throws GatewayException {
        this.session = session;
        this.stream = stream;
        this.target = target;
        id = session.open(new Session.Handler() {
            @Override
            public void take(Frame frame) {}

            @Override
            public Frame renew(int own) {
                return Frame.of(Frame.DECLARE, own, DECLARE);
            }

            @Override
            public boolean isSentAgain(Frame frame) {
                return frame.kind() == Frame.PUBLISH;
            }

            @Override
            public void ended(GatewayException why) {}
        }, own -> Frame.of(Frame.DECLARE, own, DECLARE));
        publish(flows);
    }

    private void publish(List<String> flows) throws GatewayException {
        List<Map<String, Object>> each = flows.stream().map(flow -> Map.<String, Object>of("name", flow, "transports", List.of("tcp"))).toList();
        byte[] text = Json.write(Map.of("receiver", number, "stream", stream, "target", target, "flows", each))
                .getBytes(StandardCharsets.UTF_8);
        ByteArrayOutputStream body = new ByteArrayOutputStream();
        body.writeBytes(ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN).putInt(text.length).array());
        body.writeBytes(text);
        body.writeBytes(new byte[-text.length & 3]);
        session.send(new Frame(Frame.PUBLISH, 1, id, 0, body.toByteArray()));
    }

    /** Withdraws it. */
    @Override
    public void close() {
        try {
            publish(List.of());
            session.send(new Frame(Frame.CLOSE, 0, id, 0, new byte[0]));
        } catch (GatewayException over) {
            // The session has ended, and the bus says so.
        }
    }
}

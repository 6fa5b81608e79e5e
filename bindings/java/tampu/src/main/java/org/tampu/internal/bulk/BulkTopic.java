package org.tampu.internal.bulk;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.tampu.gateway.GatewayException;
import org.tampu.internal.gateway.Frame;
import org.tampu.internal.gateway.Session;

/** A topic of the bus on which this program publishes texts, through a session of the gateway. */
final class BulkTopic implements AutoCloseable {
    private final Session session;
    private final int id;

    /** Declares it; {@code type} is the type of its samples ({@code spec/bulk.md}). */
    BulkTopic(Session session, String topic, int type) throws GatewayException {
        Map<String, Object> declare = Map.of("topic", topic, "type", type, "version", 1, "receipts", "none");
        this.session = session;
        id = session.open(new Session.Handler() {
            @Override
            public void take(Frame frame) {}

            @Override
            public Frame renew(int own) {
                return Frame.of(Frame.DECLARE, own, declare);
            }

            @Override
            public boolean isSentAgain(Frame frame) {
                return frame.kind() == Frame.PUBLISH;
            }

            @Override
            public void ended(GatewayException why) {}
        }, own -> Frame.of(Frame.DECLARE, own, declare));
    }

    /** Publishes a sample; waits at most so long while the hub is behind. Returns whether it is on its way. */
    boolean publish(String sample, long waitNanos) throws GatewayException {
        byte[] text = sample.getBytes(StandardCharsets.UTF_8);
        ByteArrayOutputStream body = new ByteArrayOutputStream();
        body.writeBytes(ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN).putInt(text.length).array());
        body.writeBytes(text);
        body.writeBytes(new byte[-text.length & 3]);
        return session.send(new Frame(Frame.PUBLISH, 1, id, 0, body.toByteArray()), waitNanos);
    }

    @Override
    public void close() throws GatewayException {
        session.send(new Frame(Frame.CLOSE, 0, id, 0, new byte[0]));
    }
}

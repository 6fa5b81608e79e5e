package org.tampu.internal.bulk;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.tampu.bulk.Protection;
import org.tampu.gateway.GatewayException;
import org.tampu.internal.gateway.Session;
import org.tampu.internal.json.Json;

/** Announcement of a receiver on the bus, through a session of the gateway. */
public final class Announcement implements AutoCloseable {
    private static final AtomicInteger NEXT = new AtomicInteger(1);

    private final int number = NEXT.getAndIncrement();
    private final String stream;
    private final String target;
    private final Protection protection;
    private final BulkTopic topic;

    /** Announces it. */
    public Announcement(Session session, String stream, String target, Protection protection, List<String> flows) throws GatewayException {
        this.stream = stream;
        this.target = target;
        this.protection = protection;
        topic = new BulkTopic(session, "bulk-receivers", 8);
        publish(flows);
    }

    private void publish(List<String> flows) throws GatewayException {
        List<Map<String, Object>> each = flows.stream().map(flow -> {
            Map<String, Object> one = new LinkedHashMap<>(Map.of("name", flow, "transports", List.of("tcp")));
            if (protection != Protection.AUTO) {
                one.put("protection", protection.name().toLowerCase(Locale.ROOT));
            }
            return one;
        }).toList();
        topic.publish(Json.write(Map.of("receiver", number, "stream", stream, "target", target, "flows", each)), Long.MAX_VALUE);
    }

    /** Withdraws it. */
    @Override
    public void close() {
        try {
            publish(List.of());
            topic.close();
        } catch (GatewayException over) {
            // The session has ended, and the bus says so.
        }
    }
}

package org.tampu.internal.bulk;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.tampu.bulk.Protection;
import org.tampu.gateway.GatewayException;
import org.tampu.internal.gateway.AnsweredService;
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
    private final AnsweredService giving;

    /** Announces it. */
    public Announcement(Session session, String stream, String target, Protection protection, List<String> flows, Passes passes)
            throws GatewayException {
        this.stream = stream;
        this.target = target;
        this.protection = protection;
        giving = give(session, passes);
        topic = new BulkTopic(session, "bulk-receivers", 8);
        publish(flows);
    }

    /** Begins to give passes, before a sender may ask for one. Returns null beside a hub that has no passes for clients. */
    private AnsweredService give(Session session, Passes passes) throws GatewayException {
        try {
            Map<String, Object> serve = Map.of("service", "bulk/pass", "name", stream, "receiver", number);
            AnsweredService given = AnsweredService.serve(session, "passes of " + stream, serve, passes::answer);
            if (given.proved()) {
                passes.need();
            }
            return given;
        } catch (GatewayException old) {
            // Senders reach the receiver where nothing proves hosts.
            if (old.code().equals("bad") || old.code().equals("version")) {
                return null;
            }
            throw old;
        }
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
            if (giving != null) {
                giving.close();
            }
        } catch (GatewayException over) {
            // The session has ended, and the bus says so.
        }
    }
}

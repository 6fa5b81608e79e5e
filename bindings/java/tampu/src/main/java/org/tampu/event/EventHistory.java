package org.tampu.event;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.tampu.gateway.Gateway;
import org.tampu.gateway.GatewayException;
import org.tampu.internal.json.Json;

/**
 * Searches the history of events.
 *
 * <pre>{@code
 * EventHistory.search(gateway, Map.of("attributes", List.of("sr/vacuum/*\/p"), "newest_first", true, "limit", 10));
 * }</pre>
 */
public final class EventHistory {
    /** Events that are asked for at once. A hub sends the whole answer without pause. */
    private static final long PAGE = 50_000;
    private static final Duration ANSWER = Duration.ofSeconds(90);

    private EventHistory() {}

    /**
     * Returns the events that a query finds, in its order.
     *
     * @param query members as in {@code spec/event-archive.md}: {@code attributes} (names and patterns), {@code since}, {@code until}
     *     (ns UTC), {@code kinds}, {@code newest_first}, {@code limit}
     */
    public static List<KeptEvent> search(Gateway gateway, Map<String, Object> query) throws GatewayException {
        List<KeptEvent> found = new ArrayList<>();
        search(gateway, query, found::add);
        return found;
    }

    /**
     * Hands over the events that a query finds, one by one, in its order. They are asked for page by page, so any number of them
     * takes the memory of one page. Returns their number.
     */
    public static long search(Gateway gateway, Map<String, Object> query, Consumer<KeptEvent> sink) throws GatewayException {
        Map<String, Object> page = new LinkedHashMap<>(query);
        long limit = query.get("limit") instanceof Number number ? number.longValue() : Long.MAX_VALUE;
        long total = 0;
        while (total < limit) {
            page.put("limit", Math.min(limit - total, PAGE));
            List<byte[]> parts = gateway.ask("event/history", Json.write(page), ANSWER);
            long found = 0;
            Map<?, ?> swept = null;
            for (byte[] part : parts) {
                if (part.length > 0 && part[0] == 'E') {
                    found += read(part, sink);
                } else {
                    Map<String, Object> end = Json.object(new String(part, StandardCharsets.UTF_8));
                    swept = end.get("swept") instanceof Map<?, ?> told ? told : null;
                }
            }
            total += found;
            if (swept == null) {
                throw new GatewayException("unanswered", "event/history: the answer was interrupted");
            }
            if (Boolean.TRUE.equals(swept.get("complete"))) {
                break;
            }
            Object cursor = swept.get("cursor");
            if (found == 0 && (cursor == null || cursor.equals(page.get("after")))) {
                throw new GatewayException("limit", "event/history: the search took too long; ask for a shorter time, or fewer attributes");
            }
            page.put("after", cursor);
        }
        return total;
    }

    private static long read(byte[] part, Consumer<KeptEvent> sink) {
        ByteBuffer events = ByteBuffer.wrap(part, 1, part.length - 1).order(ByteOrder.LITTLE_ENDIAN);
        long count = 0;
        while (events.hasRemaining()) {
            if (events.remaining() < 4) {
                throw new IllegalArgumentException("byte " + events.position() + ": a part ends within an event");
            }
            int length = events.getInt();
            if (length < 0 || length > events.remaining()) {
                throw new IllegalArgumentException("byte " + events.position() + ": a part ends within an event");
            }
            sink.accept(KeptEvent.decode(events.slice(events.position(), length).order(ByteOrder.LITTLE_ENDIAN)));
            events.position(events.position() + length);
            count++;
        }
        return count;
    }
}

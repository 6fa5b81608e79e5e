package org.tampu.log;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.tampu.gateway.Gateway;
import org.tampu.gateway.GatewayException;
import org.tampu.internal.json.Json;

/**
 * Searches the archive of logs.
 *
 * <pre>{@code
 * LogQuery.search(gateway, Map.of("min_level", "Warning", "limit", 100));
 * }</pre>
 */
public final class LogQuery {
    private LogQuery() {}

    /**
     * Returns the records that a query finds, in its order.
     *
     * @param query members as in {@code spec/log-services.md}: {@code since}, {@code until} (ns UTC), {@code min_level},
     *     {@code fields}, {@code sources}, {@code text}, {@code regex}, {@code newest_first}, {@code limit}, ...
     */
    public static List<StoredRecord> search(Gateway gateway, Map<String, Object> query) throws GatewayException {
        List<StoredRecord> found = new ArrayList<>();
        Map<String, Object> question = new LinkedHashMap<>(query);
        List<byte[]> parts = gateway.ask("log/query", Json.write(question), Duration.ofSeconds(60));
        if (parts.isEmpty() || parts.get(parts.size() - 1).length == 0 || parts.get(parts.size() - 1)[0] != '{') {
            throw new GatewayException("unanswered", "log/query: the answer was interrupted");
        }
        for (byte[] part : parts.subList(0, parts.size() - 1)) {
            found.addAll(LogBatchReader.read(part));
        }
        Map<String, Object> last = Json.object(new String(parts.get(parts.size() - 1), StandardCharsets.UTF_8));
        if (last.get("scanned") instanceof Map<?, ?> scanned && Boolean.FALSE.equals(scanned.get("complete"))
                && query.get("limit") == null) {
            throw new GatewayException("limit", "log/query: the search took too long; ask for a shorter time, or give a limit");
        }
        return found;
    }
}

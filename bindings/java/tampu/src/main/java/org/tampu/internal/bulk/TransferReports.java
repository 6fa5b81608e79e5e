package org.tampu.internal.bulk;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.tampu.bulk.BulkDelivery;
import org.tampu.bulk.BulkReport;
import org.tampu.bulk.LostRange;
import org.tampu.gateway.GatewayException;
import org.tampu.internal.gateway.Session;
import org.tampu.internal.json.Json;

/** Reports of a sender's transfers on the bus, for the account of the hubs. */
public final class TransferReports implements AutoCloseable {
    /** Longest report, in bytes. */
    private static final int LIMIT = 256 << 10;
    /** Characters of a parameter, and ranges of a receiver, that a shortened report keeps. */
    private static final int PARAMETER_KEPT = 4096;
    private static final int RANGES_KEPT = 16;
    /** A report that finds no place within this time is dropped: the account then shows a hole, and no transfer waits. */
    private static final long WAIT_NANOS = 100_000_000;
    private static final List<String> CAUSES =
            List.of("unknown", "missing", "slow", "away", "sender_gone", "corrupt", "given_up", "overwritten");
    private static final List<String> FAULTS = List.of("unknown", "wrong_order", "missing_frames", "corrupt", "frame_too_long",
            "callback_failed", "callback_slow", "callback_slow_on_average", "gave_up", "timeout", "garbled");

    private final BulkTopic topic;
    private final String stream;
    private final String flow;
    private String parameter = "";

    /** Reports the transfers of a flow. */
    public TransferReports(Session session, String stream, String flow) throws GatewayException {
        topic = new BulkTopic(session, "bulk-transfers", 9);
        this.stream = stream;
        this.flow = flow;
    }

    /** Reports that a transfer has begun. */
    public void began(long transfer, byte[] with) {
        parameter = new String(with, StandardCharsets.UTF_8);
        publish(transfer, null);
    }

    /** Reports the end of the last transfer. */
    public void ended(BulkReport report) {
        publish(report.transfer(), report);
    }

    private void publish(long transfer, BulkReport report) {
        try {
            topic.publish(note(stream, flow, transfer, parameter, report), WAIT_NANOS);
        } catch (GatewayException over) {
            // The session has ended, which the program hears elsewhere; data needs no session.
        }
    }

    /** Returns the report as JSON. One that would be too long lacks parts, and has their numbers. */
    static String note(String stream, String flow, long transfer, String parameter, BulkReport report) {
        Map<String, Object> note = new LinkedHashMap<>();
        note.put("stream", stream);
        note.put("flow", flow);
        note.put("transfer", transfer);
        note.put("parameter", parameter);
        note.put("report", report == null ? null : outcome(report, report.deliveries(), Integer.MAX_VALUE));
        String whole = Json.write(note);
        if (fits(whole)) {
            return whole;
        }
        note.put("shortened", true);
        int characters = Math.min(PARAMETER_KEPT, parameter.codePointCount(0, parameter.length()));
        note.put("parameter", parameter.substring(0, parameter.offsetByCodePoints(0, characters)));
        if (report == null) {
            return Json.write(note);
        }
        List<BulkDelivery> kept = new ArrayList<>(report.deliveries());
        kept.sort(Comparator.comparing(BulkDelivery::isComplete));
        while (true) {
            Map<String, Object> outcome = outcome(report, kept, RANGES_KEPT);
            outcome.put("deliveries_left_out", report.deliveries().size() - kept.size());
            note.put("report", outcome);
            String text = Json.write(note);
            if (fits(text) || kept.isEmpty()) {
                return text;
            }
            kept = kept.subList(0, kept.size() / 2);
        }
    }

    private static boolean fits(String text) {
        return text.length() <= LIMIT && text.getBytes(StandardCharsets.UTF_8).length <= LIMIT;
    }

    private static Map<String, Object> outcome(BulkReport report, List<BulkDelivery> deliveries, int ranges) {
        Map<String, Object> outcome = new LinkedHashMap<>();
        outcome.put("transfer", report.transfer());
        outcome.put("bytes", report.bytes());
        outcome.put("seconds", report.seconds());
        outcome.put("deliveries", deliveries.stream().map(each -> delivery(each, ranges)).toList());
        return outcome;
    }

    private static Map<String, Object> delivery(BulkDelivery delivery, int ranges) {
        Map<String, Object> one = new LinkedHashMap<>();
        one.put("receiver", Map.of("source", delivery.source(), "address", delivery.address()));
        one.put("complete", delivery.isComplete());
        one.put("acknowledged", delivery.acknowledged());
        one.put("lost", delivery.lost().stream().limit(ranges).map(TransferReports::range).toList());
        if (delivery.lost().size() > ranges) {
            one.put("lost_left_out", delivery.lost().size() - ranges);
        }
        one.put("lost_bytes", delivery.lost().stream().mapToLong(LostRange::bytes).sum());
        one.put("faults", delivery.faults().stream()
                .map(fault -> Map.of("kind", named(FAULTS, fault.kind()), "count", fault.count(), "text", fault.text())).toList());
        one.put("cut", delivery.cut() == null ? null : delivery.cut().name().toLowerCase(Locale.ROOT));
        // The account adds the texts of the faults.
        one.put("why", delivery.outcome() == BulkDelivery.Outcome.REFUSED ? "" : delivery.why());
        return one;
    }

    private static Map<String, Object> range(LostRange range) {
        Map<String, Object> one = new LinkedHashMap<>();
        one.put("from", range.from());
        one.put("to", range.to() < 0 ? null : range.to());
        one.put("frames", range.frames());
        one.put("cause", named(CAUSES, range.cause()));
        return one;
    }

    private static String named(List<String> names, int number) {
        return names.get(number < names.size() ? number : 0);
    }

    /** Ends the reports; those that are on their way arrive. */
    @Override
    public void close() {
        try {
            topic.close();
        } catch (GatewayException over) {
            // The session has ended before.
        }
    }
}

package org.tampu.internal.bulk;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.tampu.bulk.BulkDelivery;
import org.tampu.bulk.BulkDelivery.Cut;
import org.tampu.bulk.BulkDelivery.Outcome;
import org.tampu.bulk.BulkFault;
import org.tampu.bulk.BulkReport;
import org.tampu.bulk.LostRange;
import org.tampu.internal.json.Json;

/** Reports of transfers as JSON ({@code spec/bulk.md}). */
class TransferReportsTest {
    private static final BulkDelivery COMPLETE =
            new BulkDelivery("archive", "10.0.0.1:1", Outcome.COMPLETE, null, 100, List.of(), List.of(), "");

    private static Map<String, Object> note(String parameter, BulkReport report) {
        String text = TransferReports.note("correlator", "spectra", 7, parameter, report);
        assertTrue(text.getBytes(StandardCharsets.UTF_8).length <= 256 << 10);
        return Json.object(text);
    }

    private static BulkReport report(List<BulkDelivery> deliveries) {
        return new BulkReport("spectra", 7, 100, 0.5, deliveries);
    }

    @Test
    void aReportHasWhatTheAccountReads() {
        assertEquals("{\"stream\":\"correlator\",\"flow\":\"spectra\",\"transfer\":7,\"parameter\":\"uid\",\"report\":null}",
                TransferReports.note("correlator", "spectra", 7, "uid", null));
        BulkDelivery cut = new BulkDelivery("slow", "10.0.0.2:1", Outcome.CUT, Cut.SEND_TIMEOUT, 40,
                List.of(new LostRange(10, 30, 2, 2), new LostRange(90, -1, 0, 4)), List.of(new BulkFault(6, 3, "a call took 2 s")), "took nothing");
        String text = TransferReports.note("correlator", "spectra", 7, "uid", report(List.of(COMPLETE, cut)));
        assertTrue(text.contains("\"report\":{\"transfer\":7,\"bytes\":100,\"seconds\":0.5,\"deliveries\":[{"), text);
        assertTrue(text.contains("\"complete\":true,\"acknowledged\":100,\"lost\":[],\"lost_bytes\":0,\"faults\":[],\"cut\":null,\"why\":\"\"}"), text);
        assertTrue(text.contains("{\"from\":10,\"to\":30,\"frames\":2,\"cause\":\"slow\"},{\"from\":90,\"to\":null,\"frames\":0,"
                + "\"cause\":\"sender_gone\"}],\"lost_bytes\":20,"), text);
        assertTrue(text.contains("\"kind\":\"callback_slow\"") && text.endsWith("\"cut\":\"send_timeout\",\"why\":\"took nothing\"}]}}"), text);
    }

    @Test
    void aLongReportIsShortenedAndSaysSo() {
        Map<String, Object> begun = note("é".repeat(1 << 20), null);
        assertEquals(true, begun.get("shortened"));
        assertEquals(4096, ((String) begun.get("parameter")).length());

        List<LostRange> ranges = new ArrayList<>();
        for (int range = 0; range < 1024; range++) {
            ranges.add(new LostRange(2 * range, 2 * range + 1, 1, 2));
        }
        List<BulkDelivery> deliveries = new ArrayList<>();
        for (int each = 0; each < 100; each++) {
            deliveries.add(each != 70 ? COMPLETE : new BulkDelivery("late", "10.0.0.3:1", Outcome.INCOMPLETE, null, 1, ranges, List.of(),
                    "\u0001".repeat(40_000)));
        }
        @SuppressWarnings("unchecked")
        Map<String, Object> outcome = (Map<String, Object>) note("uid", report(deliveries)).get("report");
        List<?> kept = (List<?>) outcome.get("deliveries");
        assertEquals(100L, kept.size() + Json.number(outcome, "deliveries_left_out", -1));
        Map<?, ?> first = (Map<?, ?>) kept.get(0);
        assertEquals(List.of(false, 1008L, 1024L), List.of(first.get("complete"), first.get("lost_left_out"), first.get("lost_bytes")));
        assertEquals(16, ((List<?>) first.get("lost")).size());
    }
}

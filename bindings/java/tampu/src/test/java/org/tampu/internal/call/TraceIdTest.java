package org.tampu.internal.call;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HexFormat;
import org.junit.jupiter.api.Test;

/** Ids of traces in whole records, which the node does not look at. */
class TraceIdTest {
    private static final String TRACE = "0af7651916cd43dd8448eb211c80319c";
    private static final String SPAN = "b7ad6b7169203331";

    @Test
    void aValueWithAnIdBecomesAFieldOfTheRecord() {
        WholeRecord record = new WholeRecord();
        record.message = "in a span";
        assertFalse(record.takeId("scan", "7"));
        assertTrue(record.takeId("trace_id", TRACE));
        assertTrue(record.takeId("span_id", SPAN.toUpperCase()));
        String batch = HexFormat.of().formatHex(record.toBatch(null, 0, 0));
        assertTrue(batch.contains("10000000" + TRACE + "08000000" + SPAN), batch);
        assertFalse(record.takeId("trace_id", TRACE), "the first counts");
    }

    @Test
    void otherValuesStayBesideTheMessage() {
        WholeRecord record = new WholeRecord();
        for (String other : new String[] {"", "7", TRACE.substring(1), TRACE + "0", "+" + TRACE.substring(1), "0".repeat(32), "é".repeat(32)}) {
            assertFalse(record.takeId("trace_id", other), other);
        }
        assertFalse(record.takeId("span_id", TRACE));
        assertEquals(0, record.traceId.length + record.spanId.length);
    }
}

package org.tampu.event;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.junit.jupiter.api.Test;

class EventTest {
    @Test
    void aReadingCanNameTheKindsOfItsEvent() throws Exception {
        Event reading = Event.reading(Value.of(1.5), Quality.VALID, 7).withKinds("change", "archive");
        assertTrue(reading.isOf("change") && reading.isOf("archive"));
        assertFalse(reading.isOf("alarm"));
        Event sent = EventCodec.decode(ByteBuffer.wrap(EventCodec.encode(reading)).order(ByteOrder.LITTLE_ENDIAN));
        assertEquals(reading, sent);
        var wrong = assertThrows(IllegalArgumentException.class, () -> reading.withKinds("changed"));
        assertTrue(wrong.getMessage().contains("'changed'"), wrong.getMessage());
    }
}

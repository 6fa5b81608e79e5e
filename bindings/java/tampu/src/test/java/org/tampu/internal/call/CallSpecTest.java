package org.tampu.internal.call;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.nio.charset.StandardCharsets;
import java.util.AbstractMap.SimpleImmutableEntry;
import java.util.HexFormat;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.tampu.internal.SpecPage;
import org.tampu.internal.ring.Incarnation;
import org.tampu.internal.ring.RingPool;

/** Calls beside {@code spec/log-call.md} and {@code spec/wire/log-batch.md}. */
class CallSpecTest {
    private static String payload(Object... values) {
        Payload payload = new Payload();
        payload.begin(values.length);
        for (Object value : values) {
            payload.put(value);
        }
        return HexFormat.ofDelimiter(" ").formatHex(payload.bytes, RingPool.HEADER, RingPool.HEADER + payload.length());
    }

    @Test
    void valuesAreStoredAsThePageSays() throws Exception {
        assertEquals("01 00 00 00 00 00 00 00 01", payload(true));
        assertEquals("02 00 00 00 00 00 00 00 e9 00 00 00", payload('é'));
        assertEquals("09 00 00 00 00 00 00 00 fe ff", payload((short) -2));
        assertEquals("0d 00 00 00 00 00 00 00 00 00 c0 3f", payload(1.5f));
        assertEquals("0f 00 00 00 00 00 00 00 06 00 00 00 5b 31 2c 20 32 5d", payload((Object) new int[] {1, 2}));
        assertEquals("0f 00 00 00 00 00 00 00 04 00 00 00 6e 75 6c 6c", payload((Object) null));
        byte[] page = SpecPage.dumps("log-call.md").get(1);
        String ours = payload(-7.5, "DV01", (byte) 7);
        // The page's last value is unsigned; the bytes of the value are the same.
        page[2] = 8;
        assertEquals(HexFormat.ofDelimiter(" ").formatHex(page), ours);
    }

    @Test
    void aTextIsCutAndSaysHowLongItWas() {
        String hex = payload("x".repeat(70_000));
        assertEquals("0f 00 00 00 00 00 00 00 70 11 01 00", hex.substring(0, 35));
        assertEquals(8 + 4 + 65_536, (hex.length() + 1) / 3);
    }

    @Test
    void aValueWhoseTextFailsDoesNotEndTheCall() {
        Object broken = new Object() {
            @Override
            public String toString() {
                throw new IllegalStateException("no text");
            }
        };
        assertEquals("[" + broken.getClass().getName() + ".toString() threw java.lang.IllegalStateException]", Texts.of(broken));
    }

    @Test
    void placesAreThoseOfSlf4j() {
        assertEquals(new Template(List.of("az ", 0, " of ", 1), 2), Template.ofBraces("az {} of {}"));
        assertEquals(new Template(List.of("set {} to ", 0), 1), Template.ofBraces("set \\{} to {}"));
        assertEquals(new Template(List.of("C:\\", 0), 1), Template.ofBraces("C:\\\\{}"));
        assertEquals(new Template(List.of("a { b } {"), 0), Template.ofBraces("a { b } {"));
        assertEquals(32, Template.ofBraces("{}".repeat(100)).arguments());
        assertEquals("1 of {}", Template.ofBraces("{} of {}").render(new Object[] {1}));
    }

    @Test
    void placesOfTheJdkAreNumbered() {
        assertEquals(new Template(List.of(1, " it's ", 0), 2), Template.ofNumbers("{1} it''s {0}"));
        assertEquals(new Template(List.of("{0} is ", 0), 1), Template.ofNumbers("'{0}' is {0}"));
        assertNull(Template.ofNumbers("{0,number,#.##}"));
        assertNull(Template.ofNumbers("{ open"));
    }

    @Test
    void aSiteIsThatOfThePageButForItsSpecs() throws Exception {
        byte[] page = SpecPage.dumps("log-call.md").get(0);
        byte[] ours = Site.encode(4, new StackTraceElement("", "m::f", "a.rs", 7), new Template(List.of("az ", 0, " of ", 1), 2), 1,
                List.of("scan"));
        // The page's routine has no class before it, and there is no module in Java.
        byte[] expected = new byte[ours.length];
        System.arraycopy(page, 0, expected, 0, 16);
        int routine = 16 + 4;
        byte[] name = {5, 0, 0, 0, '.', 'm', ':', ':', 'f'};
        System.arraycopy(name, 0, expected, routine, name.length);
        System.arraycopy(page, 29, expected, routine + name.length, page.length - 29);
        // Spec of argument 0: plain, shown as a float with its point. Of argument 1: plain.
        byte[] plain = {' ', 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0};
        System.arraycopy(plain, 0, expected, 46, 12);
        expected[77] = 0;
        assertEquals(page.length, ours.length);
        assertArrayEquals(expected, ours);
    }

    @Test
    void aWholeRecordIsTheBatchOfThePage() throws Exception {
        WholeRecord record = new WholeRecord();
        record.time = 1795248001000000000L;
        record.level = 6;
        record.message = "cable wrap at limit";
        record.voice = new Voice("mount").withAudiences(List.of("Operator"));
        record.file = "Mount.cpp";
        record.line = 52;
        record.data = List.of(new SimpleImmutableEntry<>("angle", "269.9"));
        byte[] batch = record.toBatch(new Incarnation(0x1a2b3c4d, 0x1267, 0x18ea008b6316cd15L), 3, 14);
        assertArrayEquals(SpecPage.dumps("wire/log-batch.md").get(0), batch);
    }

    @Test
    void voicesAreTheJsonOfThePage() {
        assertEquals("{\"logger\":\"mount\",\"context\":\"a\\\"b\\u000a\",\"audiences\":[\"Operator\",\"DBA\"]}",
                new String(new Voice("mount").withContext("a\"b\n").withAudiences(List.of("Operator", "DBA")).encode(),
                        StandardCharsets.UTF_8));
    }
}

package org.tampu.event;

import java.nio.ByteBuffer;
import java.util.List;
import org.tampu.internal.cdr.CdrReader;

/**
 * An event as the history keeps it ({@code spec/event-archive.md}), or a message about its source. Texts that it does not have are
 * empty.
 *
 * @param reason {@code first}, {@code update}, {@code resumed}, {@code gap}, {@code source died}, {@code source hung},
 *     {@code source returned} or {@code source left}
 * @param attribute the attribute's number in this life of its source
 * @param from the first of the attribute's numbers that it stands for; 0 for a message about the source
 * @param number the last of them: its own
 * @param time time of the reading, ns UTC; of a message, that of its arrival
 * @param received time of reception by the hub, ns UTC
 * @param incarnation life of the source: boot, process and start in hexadecimal digits
 * @param source name of the source
 * @param name the attribute's name
 * @param unit the unit that held
 * @param note label of an index; of a gap its reason; else a remark
 * @param event the event with its value, or null without a reading
 */
public record KeptEvent(
        String reason,
        int attribute,
        long from,
        long number,
        long time,
        long received,
        String incarnation,
        String source,
        String name,
        String unit,
        String note,
        Event event) {
    /** Reasons by their numbers. */
    private static final List<String> REASONS =
            List.of("first", "update", "resumed", "gap", "source died", "source hung", "source returned", "source left");

    /**
     * Decodes the kept event between the buffer's position and limit.
     *
     * @throws IllegalArgumentException with the byte of the error
     */
    static KeptEvent decode(ByteBuffer bytes) {
        CdrReader in = new CdrReader(bytes);
        in.open();
        int reason = in.u8();
        if (reason >= REASONS.size()) {
            throw new IllegalArgumentException("byte 8: " + reason + " is no reason");
        }
        // The state of the clock and two zeros.
        in.raw(3);
        int attribute = in.u32();
        long from = in.u64();
        long number = in.u64();
        long time = in.u64();
        long received = in.u64();
        String incarnation = String.format("%08x-%08x-%016x", in.u32(), in.u32(), in.u64());
        String source = in.string();
        String name = in.string();
        String unit = in.string();
        String note = in.string();
        byte[] event = in.raw(in.count(1));
        return new KeptEvent(REASONS.get(reason), attribute, from, number, time, received, incarnation, source, name, unit, note,
                event.length == 0 ? null : EventCodec.decode(ByteBuffer.wrap(event)));
    }
}

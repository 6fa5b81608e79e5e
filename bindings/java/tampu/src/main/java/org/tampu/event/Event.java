package org.tampu.event;

import java.util.List;

/**
 * An event of an attribute.
 *
 * @param attribute the attribute's number in this life of its source
 * @param epoch the configuration that holds
 * @param time time of the reading, ns UTC
 * @param number counts the attribute's events in this life, from 1
 * @param kinds a bit for each kind: change, alarm, archive, periodic, user, configuration, data ready, interface, generic
 * @param quality quality of the reading
 * @param flags 1: the current value, because somebody asked; 2 and 4 as in {@code spec/event.idl}
 * @param value the value, or null
 * @param setPoint the elements and type of the set point as a value of one row, or null
 * @param errors stack of errors, innermost first
 * @param token number of the question that is answered, or null
 * @param name name of a generic event, else empty
 * @param leftOut events directly before this one that no reader of the stream wants
 * @param age of a current value: ns since the attribute was declared in this life of its source, by a steady clock; 0 if it is not told
 */
public record Event(
        int attribute,
        int epoch,
        long time,
        long number,
        int kinds,
        Quality quality,
        int flags,
        Value value,
        Value setPoint,
        List<Failure> errors,
        Long token,
        String name,
        long leftOut,
        long age) {
    /** Kinds by their bits. */
    public static final List<String> KINDS = List.of(
            "change", "alarm", "archive", "periodic", "user", "configuration", "data_ready", "interface", "generic");

    /**
     * Makes a reading for {@link EventServer}. The hub sets attribute, number and kinds, and the time if it is 0. It is an
     * event only if a criterion of the attribute holds; see {@link #withKinds} otherwise.
     */
    public static Event reading(Value value, Quality quality, long time) {
        return new Event(0, 0, time, 0, 0, quality, 0, value, null, List.of(), null, "", 0, 0);
    }

    /** Makes a reading that failed. */
    public static Event failed(Failure... errors) {
        return new Event(0, 0, 0, 0, 0, Quality.INVALID, 0, null, null, List.of(errors), null, "", 0, 0);
    }

    /**
     * Returns this reading as one that is sent as these kinds, whatever the criteria of the attribute say.
     *
     * @param names of {@link #KINDS}
     * @throws IllegalArgumentException for another name
     */
    public Event withKinds(String... names) {
        int bits = 0;
        for (String kind : names) {
            int bit = KINDS.indexOf(kind);
            if (bit < 0) {
                throw new IllegalArgumentException("no kind of event is called '" + kind + "'; there are " + KINDS);
            }
            bits |= 1 << bit;
        }
        return new Event(attribute, epoch, time, number, bits, quality, flags, value, setPoint, errors, token, name, leftOut,
                age);
    }

    /** Returns whether it is of this kind, as {@code change}. */
    public boolean isOf(String kind) {
        int bit = KINDS.indexOf(kind);
        return bit >= 0 && (kinds >>> bit & 1) != 0;
    }
}

package org.tampu.event;

import java.util.Map;

/**
 * Delivery to a subscription: an event, or a notice without one.
 *
 * @param attribute name of the attribute
 * @param source the process that declares it
 * @param incarnation life of that process
 * @param config configuration of the attribute, as {@code event/list} has it
 * @param reason {@code first}, {@code update}, {@code resumed}; or of a notice: {@code gap}, {@code source died}, {@code
 *     source hung}, {@code source returned}, {@code source left}, {@code configuration changed}, {@code conflict}
 * @param event the event, or null for a notice
 * @param missedFrom number of the first event that will not come, 0 if none or unknown
 * @param missedTo number of the event after the last missing one, 0 if none or unknown
 * @param mayMiss whether an unknown number of events before this one may be missing
 */
public record Delivery(
        String attribute,
        String source,
        String incarnation,
        Map<String, Object> config,
        String reason,
        Event event,
        long missedFrom,
        long missedTo,
        boolean mayMiss) {}

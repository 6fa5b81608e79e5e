package org.tampu.event;

import java.util.HashMap;
import java.util.Iterator;
import java.util.Locale;
import java.util.Map;

/**
 * Numbers of the events that a subscription got. A hub that began anew does not know them. By them the first event after
 * that says which events are missing ({@code spec/wire/gateway.md}).
 */
final class AttributeProgress {
    private final Map<String, Map<String, Life>> attributes = new HashMap<>();

    /** Missing events: from this number, up to the one before the other. With {@code unknown}, their number is unknown. */
    record Missed(long from, long to, boolean unknown) {}

    static final Missed NOTHING = new Missed(0, 0, false);
    static final Missed UNKNOWN = new Missed(0, 0, true);

    /** Progress of an attribute in one life of its source. */
    static final class Life {
        private final Map<String, Life> all;
        private boolean hasEvent;
        private long last;
        /** True from the hub's new beginning to the next event. */
        private boolean isBefore;
        private boolean hasEnded;

        private Life(Map<String, Life> all) {
            this.all = all;
        }

        /** Notes an event. If it is the first one after the hub began anew, returns the events missing before it, else null. */
        Missed event(long number) {
            if (!hasEvent) {
                hasEvent = true;
                last = number;
                boolean follows = all.values().stream().anyMatch(each -> each.isBefore);
                all.values().removeIf(each -> each.hasEnded);
                return follows ? UNKNOWN : null;
            }
            long before = last;
            last = Math.max(last, number);
            if (!isBefore) {
                return null;
            }
            isBefore = false;
            return number > before + 1 ? new Missed(before + 1, number, false) : NOTHING;
        }

        /** Notes that the hub has reported a gap, which ends before this number. */
        void gap(long end) {
            if (hasEvent) {
                last = Math.max(last, end - 1);
            }
        }

        void ended() {
            hasEnded = true;
        }
    }

    /** Returns the progress in a life of an attribute. */
    Life of(String attribute, String incarnation) {
        Map<String, Life> lives = attributes.computeIfAbsent(attribute.toLowerCase(Locale.ROOT), each -> new HashMap<>());
        Life life = lives.computeIfAbsent(incarnation, each -> new Life(lives));
        life.hasEnded = false;
        return life;
    }

    /** The hub began anew. */
    void renewed() {
        for (Map<String, Life> lives : attributes.values()) {
            boolean hasGoneOn = lives.values().stream().anyMatch(each -> each.hasEvent && !each.isBefore);
            for (Iterator<Life> each = lives.values().iterator(); each.hasNext(); ) {
                Life life = each.next();
                if (!life.hasEvent || hasGoneOn && life.isBefore) {
                    each.remove();
                }
                life.isBefore = true;
            }
        }
    }
}

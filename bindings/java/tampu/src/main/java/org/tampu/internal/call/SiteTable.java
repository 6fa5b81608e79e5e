package org.tampu.internal.call;

import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.tampu.internal.ring.RingPool;

/**
 * The sites of this process: a number for each level, message, place in the code and set of value names.
 *
 * <p>Messages that a program makes at run time would fill the dictionary. So there are at most {@link #MOST} sites;
 * later messages are stored as texts under a site of their level alone.
 */
final class SiteTable {
    /** Sites of one process. */
    private static final int MOST = 8192;
    /** Variants of one message: kinds of its arguments and names of its values. */
    private static final int VARIANTS = 32;

    /** A message at one level, and perhaps at one place. */
    static final class Family {
        final Template template;
        private final int level;
        private final StackTraceElement where;
        private volatile Variant[] variants = {};

        Family(Template template, int level, StackTraceElement where) {
            this.template = template;
            this.level = level;
            this.where = where;
        }
    }

    private record Variant(long floats, String[] names, int id) {}

    private record Place(int level, Style style, String format, StackTraceElement where) {}

    /** The way in which a message marks the places of its arguments. */
    enum Style { BRACES, NUMBERS }

    private final RingPool pool;
    private final List<ConcurrentHashMap<String, Family>> braces;
    private final List<ConcurrentHashMap<String, Family>> numbers;
    private final ConcurrentHashMap<Place, Family> located = new ConcurrentHashMap<>();
    private final Family[] plain;
    private final AtomicInteger families = new AtomicInteger();

    SiteTable(RingPool pool, int levels) {
        this.pool = pool;
        this.braces = maps(levels);
        this.numbers = maps(levels);
        this.plain = new Family[levels];
        Template text = new Template(List.of(0), 1);
        for (int level = 0; level < levels; level++) {
            plain[level] = new Family(text, level, null);
        }
    }

    private static List<ConcurrentHashMap<String, Family>> maps(int levels) {
        return IntStream.range(0, levels).mapToObj(level -> new ConcurrentHashMap<String, Family>()).toList();
    }

    /** Returns the site of texts that no message describes. */
    Family text(int level, StackTraceElement where) {
        if (where == null) {
            return plain[level];
        }
        Place place = new Place(level, Style.BRACES, null, where);
        Family found = located.get(place);
        return found != null ? found : add(located, place, plain[level].template, level, where, plain[level]);
    }

    /** Returns a message's site; null if there are too many, or only its own library can make its text. */
    Family of(int level, Style style, String format, StackTraceElement where) {
        if (where != null) {
            Place place = new Place(level, style, format, where);
            Family found = located.get(place);
            return found != null ? found : add(located, place, parse(style, format), level, where, null);
        }
        ConcurrentHashMap<String, Family> map = (style == Style.BRACES ? braces : numbers).get(level);
        Family found = map.get(format);
        return found != null ? found : add(map, format, parse(style, format), level, null, null);
    }

    private static Template parse(Style style, String format) {
        return style == Style.BRACES ? Template.ofBraces(format) : Template.ofNumbers(format);
    }

    private <K> Family add(
            ConcurrentHashMap<K, Family> map, K key, Template template, int level, StackTraceElement where, Family otherwise) {
        if (template == null || families.get() >= MOST) {
            return otherwise;
        }
        families.incrementAndGet();
        Family made = new Family(template, level, where);
        Family other = map.putIfAbsent(key, made);
        return other == null ? made : other;
    }

    /** Returns the number of a site with these values; 0 if there is no room for it. */
    int id(Family family, long floats, String[] names, int count) {
        for (Variant variant : family.variants) {
            if (variant.floats == floats && same(variant.names, names, count)) {
                return variant.id;
            }
        }
        return define(family, floats, names, count);
    }

    private static boolean same(String[] names, String[] others, int count) {
        if (names.length != count) {
            return false;
        }
        for (int at = 0; at < count; at++) {
            if (names[at] != others[at] && !names[at].equals(others[at])) {
                return false;
            }
        }
        return true;
    }

    private int define(Family family, long floats, String[] names, int count) {
        synchronized (family) {
            Variant[] known = family.variants;
            for (Variant variant : known) {
                if (variant.floats == floats && same(variant.names, names, count)) {
                    return variant.id;
                }
            }
            if (known.length >= VARIANTS) {
                return 0;
            }
            String[] own = Arrays.copyOf(names, count);
            int id = pool.defineSite(Site.encode(family.level, family.where, family.template, floats, List.of(own)));
            if (id != 0) {
                Variant[] more = Arrays.copyOf(known, known.length + 1);
                more[known.length] = new Variant(floats, own, id);
                family.variants = more;
            }
            return id;
        }
    }
}

package org.tampu.internal.call;

import java.util.AbstractMap.SimpleImmutableEntry;
import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;

/**
 * The records of an exception and its causes. They share the stack id of the record of the call, which is the outermost;
 * each cause lies one level deeper.
 */
final class ErrorChain {
    /** Causes of one exception. */
    private static final int DEEPEST = 32;
    /** Characters of a stack trace. */
    private static final int TRACE_MAX = 16_384;

    private ErrorChain() {}

    static List<WholeRecord> of(WholeRecord call, Throwable thrown) {
        List<WholeRecord> chain = new ArrayList<>();
        Set<Throwable> seen = Collections.newSetFromMap(new IdentityHashMap<>());
        StackTraceElement[] outer = {};
        for (Throwable each = thrown; each != null && seen.add(each) && seen.size() <= DEEPEST; each = cause(each)) {
            StackTraceElement[] frames = frames(each);
            WholeRecord link = new WholeRecord();
            link.voice = call.voice;
            link.time = call.time;
            link.level = call.level;
            link.host = call.host;
            link.process = call.process;
            link.thread = call.thread;
            link.stackId = call.stackId;
            link.traceId = call.traceId;
            link.spanId = call.spanId;
            link.stackLevel = call.stackLevel + 1 + chain.size();
            link.message = Texts.of(each);
            link.at(frames.length > 0 ? frames[0] : null);
            link.data = List.of(
                    new SimpleImmutableEntry<>("exception", each.getClass().getName()),
                    new SimpleImmutableEntry<>("stack", trace(frames, outer, each)));
            chain.add(link);
            outer = frames;
        }
        return chain;
    }

    private static Throwable cause(Throwable thrown) {
        try {
            return thrown.getCause();
        } catch (RuntimeException broken) {
            return null;
        }
    }

    private static StackTraceElement[] frames(Throwable thrown) {
        try {
            return thrown.getStackTrace();
        } catch (RuntimeException broken) {
            return new StackTraceElement[0];
        }
    }

    /** Returns the frames, without those that the outer exception has as well, and the suppressed exceptions. */
    private static String trace(StackTraceElement[] frames, StackTraceElement[] outer, Throwable thrown) {
        int common = 0;
        // The first frame is always shown.
        while (common < Math.min(frames.length - 1, outer.length)
                && frames[frames.length - 1 - common].equals(outer[outer.length - 1 - common])) {
            common++;
        }
        StringBuilder text = new StringBuilder();
        for (int at = 0; at < frames.length - common && text.length() < TRACE_MAX; at++) {
            text.append(text.isEmpty() ? "" : "\n").append("at ").append(frames[at]);
        }
        if (common > 0) {
            text.append("\n... ").append(common).append(" more");
        }
        for (Throwable suppressed : thrown.getSuppressed()) {
            text.append("\nsuppressed: ").append(Texts.of(suppressed));
        }
        return text.length() > TRACE_MAX ? text.substring(0, TRACE_MAX) + "\n..." : text.toString();
    }
}

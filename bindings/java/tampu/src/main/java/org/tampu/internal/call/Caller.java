package org.tampu.internal.call;

/** Finds the place in the code that logs: the first frame outside of logging libraries. It takes about a microsecond. */
final class Caller {
    private static final StackWalker WALKER = StackWalker.getInstance();
    private static final String[] LIBRARIES = {
        "org.tampu.log.", "org.tampu.internal.", "org.tampu.slf4j.", "org.tampu.logback.", "org.tampu.log4j.", "org.slf4j.",
        "java.util.logging.", "ch.qos.logback.", "org.apache.logging.", "org.apache.log4j.", "org.apache.commons.logging.",
        "org.jboss.logging.", "alma.acs.logging."
    };

    private Caller() {}

    static StackTraceElement find() {
        return WALKER.walk(frames -> frames.filter(frame -> !isLibrary(frame.getClassName())).findFirst()
                .map(StackWalker.StackFrame::toStackTraceElement).orElse(null));
    }

    private static boolean isLibrary(String name) {
        for (String library : LIBRARIES) {
            if (name.startsWith(library)) {
                return true;
            }
        }
        return false;
    }
}

package org.tampu.slf4j;

import java.util.List;
import org.slf4j.Marker;
import org.slf4j.event.KeyValuePair;
import org.slf4j.event.Level;
import org.slf4j.event.LoggingEvent;
import org.slf4j.helpers.LegacyAbstractLogger;
import org.slf4j.spi.LoggingEventAware;
import org.tampu.internal.call.LogCore;
import org.tampu.internal.call.LogEvent;

/**
 * A logger of slf4j. Values of the fluent calls and of the context become named values. A marker with the name of an
 * audience ({@code Operator}, {@code Developer}, {@code Sysadmin}, {@code DBA}, {@code SciLog}) sends the record to it.
 */
final class TampuLogger extends LegacyAbstractLogger implements LoggingEventAware {
    private static final long serialVersionUID = 1;
    private static final List<String> AUDIENCES = List.of("Operator", "Developer", "Sysadmin", "DBA", "SciLog");

    private final transient LogCore core;
    private final transient LogCore.KnownVoice voice;
    private final transient TampuMdc mdc;
    private final int least;

    TampuLogger(String name, LogCore core, LogCore.KnownVoice voice, TampuMdc mdc, int least) {
        this.name = name;
        this.core = core;
        this.voice = voice;
        this.mdc = mdc;
        this.least = least;
    }

    private static int number(Level level) {
        return switch (level) {
            case TRACE -> 1;
            case DEBUG -> 3;
            case INFO -> 4;
            case WARN -> 6;
            case ERROR -> 8;
        };
    }

    @Override
    public boolean isTraceEnabled() {
        return least <= 1;
    }

    @Override
    public boolean isDebugEnabled() {
        return least <= 3;
    }

    @Override
    public boolean isInfoEnabled() {
        return least <= 4;
    }

    @Override
    public boolean isWarnEnabled() {
        return least <= 6;
    }

    @Override
    public boolean isErrorEnabled() {
        return least <= 8;
    }

    @Override
    protected String getFullyQualifiedCallerName() {
        return TampuLogger.class.getName();
    }

    @Override
    protected void handleNormalizedLoggingCall(Level level, Marker marker, String message, Object[] arguments, Throwable thrown) {
        LogEvent event = begin(level, message, arguments, thrown);
        if (marker != null) {
            mark(event, marker);
        }
        core.log(event);
    }

    @Override
    public void log(LoggingEvent call) {
        if (number(call.getLevel()) < least) {
            return;
        }
        LogEvent event = begin(call.getLevel(), call.getMessage(), call.getArgumentArray(), call.getThrowable());
        if (call.getMarkers() != null) {
            call.getMarkers().forEach(marker -> mark(event, marker));
        }
        if (call.getKeyValuePairs() != null) {
            for (KeyValuePair pair : call.getKeyValuePairs()) {
                event.data(pair.key, pair.value);
            }
        }
        core.log(event);
    }

    private LogEvent begin(Level level, String message, Object[] arguments, Throwable thrown) {
        LogEvent event = LogCore.event();
        event.level = number(level);
        event.voice = voice;
        event.message = message;
        event.thrown = thrown;
        if (arguments != null) {
            event.arguments = arguments;
            event.count = arguments.length;
            event.takeException();
        }
        String[] pairs = mdc.pairs();
        for (int at = 0; at < pairs.length; at += 2) {
            event.data(pairs[at], pairs[at + 1]);
        }
        return event;
    }

    private void mark(LogEvent event, Marker marker) {
        String name = marker.getName();
        for (String audience : AUDIENCES) {
            if (audience.equalsIgnoreCase(name)) {
                event.voice = core.voice(event.voice.fields().withAudiences(List.of(audience)));
                return;
            }
        }
        event.data("marker", name);
    }
}

package org.tampu.logback;

import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.classic.spi.IThrowableProxy;
import ch.qos.logback.classic.spi.ThrowableProxy;
import ch.qos.logback.core.UnsynchronizedAppenderBase;
import java.io.IOException;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Marker;
import org.slf4j.event.KeyValuePair;
import org.tampu.internal.call.LogCore;
import org.tampu.internal.call.LogEvent;
import org.tampu.internal.call.Voice;
import org.tampu.log.Level;
import org.tampu.log.LogSettings;

/**
 * Writes the events of Logback to Tampu. It needs no asynchronous appender before it: a call takes less time than one.
 *
 * <pre>{@code
 * <appender name="TAMPU" class="org.tampu.logback.TampuAppender">
 *   <source>CONTROL/DV01</source>
 * </appender>
 * }</pre>
 *
 * <p>Values of the context (MDC) and of fluent calls become named values. A marker with the name of an audience sends
 * the record to it. Exceptions become error chains.
 */
public final class TampuAppender extends UnsynchronizedAppenderBase<ILoggingEvent> {
    private static final List<String> AUDIENCES = List.of("Operator", "Developer", "Sysadmin", "DBA", "SciLog");

    private final Map<String, LogCore.KnownVoice> voices = new ConcurrentHashMap<>();
    private String source;
    private String domain;
    private String locate = "Warning";
    private LogCore core;

    /** Sets the stable name of the process; default is the property {@code tampu.source}, else the main class. */
    public void setSource(String source) {
        this.source = source;
    }

    /** Sets the name of the installation; default is {@code TAMPU_DOMAIN}. */
    public void setDomain(String domain) {
        this.domain = domain;
    }

    /** Sets the level from which records get their place in the code, or {@code off}; default is {@code Warning}. */
    public void setLocate(String locate) {
        this.locate = locate;
    }

    @Override
    public void start() {
        try {
            LogSettings settings = LogSettings.fromEnvironment(source == null ? LogSettings.defaultSource() : source);
            settings = domain == null ? settings : settings.inDomain(domain);
            core = LogCore.open(settings.withLocate(locate.equalsIgnoreCase("off") ? null : Level.parse(locate)));
            super.start();
        } catch (IOException | IllegalArgumentException unusable) {
            addError("Tampu cannot take log records", unusable);
        }
    }

    @Override
    protected void append(ILoggingEvent logged) {
        LogEvent event = LogCore.event();
        event.level = number(logged.getLevel().toInt());
        event.voice = voice(logged.getLoggerName());
        Instant time = logged.getInstant();
        event.time = time == null
                ? logged.getTimeStamp() * 1_000_000 : time.getEpochSecond() * 1_000_000_000L + time.getNano();
        // Behind an asynchronous appender this is another thread.
        String thread = logged.getThreadName();
        event.thread = thread.equals(Thread.currentThread().getName()) ? null : thread;
        event.message = logged.getMessage();
        Object[] arguments = logged.getArgumentArray();
        if (arguments != null) {
            event.arguments = arguments;
            event.count = arguments.length;
        }
        IThrowableProxy thrown = logged.getThrowableProxy();
        event.thrown = thrown instanceof ThrowableProxy proxy ? proxy.getThrowable() : null;
        if (event.thrown == null && thrown != null) {
            event.data("exception", thrown.getClassName() + ": " + thrown.getMessage());
        }
        if (logged.getMarkerList() != null) {
            logged.getMarkerList().forEach(marker -> mark(event, marker));
        }
        if (logged.getKeyValuePairs() != null) {
            for (KeyValuePair pair : logged.getKeyValuePairs()) {
                event.data(pair.key, pair.value);
            }
        }
        Map<String, String> context = logged.getMDCPropertyMap();
        if (!context.isEmpty()) {
            context.forEach(event::data);
        }
        core.log(event);
    }

    private LogCore.KnownVoice voice(String name) {
        LogCore.KnownVoice found = voices.get(name);
        return found != null ? found : voices.computeIfAbsent(name, each -> core.voice(new Voice(each)));
    }

    private void mark(LogEvent event, Marker marker) {
        for (String audience : AUDIENCES) {
            if (audience.equalsIgnoreCase(marker.getName())) {
                event.voice = core.voice(event.voice.fields().withAudiences(List.of(audience)));
                return;
            }
        }
        event.data("marker", marker.getName());
    }

    private static int number(int level) {
        if (level >= ch.qos.logback.classic.Level.ERROR_INT) {
            return Level.ERROR.number();
        } else if (level >= ch.qos.logback.classic.Level.WARN_INT) {
            return Level.WARNING.number();
        } else if (level >= ch.qos.logback.classic.Level.INFO_INT) {
            return Level.INFO.number();
        }
        return (level >= ch.qos.logback.classic.Level.DEBUG_INT ? Level.DEBUG : Level.TRACE).number();
    }
}

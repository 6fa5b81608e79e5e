package org.tampu.log;

import java.io.IOException;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.MissingResourceException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.logging.ErrorManager;
import java.util.logging.Handler;
import java.util.logging.LogManager;
import java.util.logging.LogRecord;
import org.tampu.internal.call.LogCore;
import org.tampu.internal.call.LogEvent;
import org.tampu.internal.call.Voice;

/**
 * A handler of {@code java.util.logging} that writes to Tampu, for plain programs and for those of ACS.
 *
 * <pre>
 * handlers = org.tampu.log.TampuHandler
 * org.tampu.log.TampuHandler.source = CONTROL/DV01/javaContainer
 * </pre>
 *
 * <p>Properties: {@code source}, {@code domain}, {@code level} (as of every handler), {@code locate} (the level from
 * which records get their place in the code, or {@code off}; default {@code Warning}), {@code severe} (Tampu's level of
 * {@code SEVERE}; default {@code Error}; ACS has {@code Emergency}).
 */
public final class TampuHandler extends Handler {
    private final LogCore core;
    private final Level severe;
    private final Map<String, LogCore.KnownVoice> voices = new ConcurrentHashMap<>();

    /** Makes the handler that the properties of the log manager describe. */
    public TampuHandler() throws IOException {
        this(configured(), Level.parse(property("severe", "Error")));
        setLevel(java.util.logging.Level.parse(property("level", "ALL")));
    }

    /** Makes a handler with these settings. */
    public TampuHandler(LogSettings settings, Level severe) throws IOException {
        this.core = LogCore.open(settings);
        this.severe = severe;
    }

    private static LogSettings configured() throws IOException {
        LogSettings settings = LogSettings.fromEnvironment(property("source", LogSettings.defaultSource()));
        String domain = property("domain", "");
        String locate = property("locate", "Warning");
        settings = domain.isEmpty() ? settings : settings.inDomain(domain);
        return settings.withLocate(locate.equalsIgnoreCase("off") ? null : Level.parse(locate));
    }

    private static String property(String name, String otherwise) {
        String value = LogManager.getLogManager().getProperty(TampuHandler.class.getName() + "." + name);
        return value == null || value.isBlank() ? otherwise : value.strip();
    }

    @Override
    public void publish(LogRecord record) {
        if (!isLoggable(record)) {
            return;
        }
        try {
            LogEvent event = LogCore.event();
            event.level = JulLevels.of(record.getLevel(), severe).number();
            event.voice = voice(record);
            event.time = record.getInstant().getEpochSecond() * 1_000_000_000L + record.getInstant().getNano();
            if (record.getLongThreadID() != Thread.currentThread().getId()) {
                event.thread = "thread-" + record.getLongThreadID();
            }
            event.message = localised(record);
            event.isNumbered = true;
            event.thrown = record.getThrown();
            Object[] parameters = record.getParameters();
            if (parameters != null && parameters.length > 0) {
                JulParameters.take(core, event, record, parameters);
            }
            core.log(event);
        } catch (RuntimeException broken) {
            reportError("a record of " + record.getLoggerName() + " is not published", broken, ErrorManager.FORMAT_FAILURE);
        }
    }

    private LogCore.KnownVoice voice(LogRecord record) {
        String name = record.getLoggerName() == null ? "" : record.getLoggerName();
        LogCore.KnownVoice found = voices.get(name);
        if (found == null) {
            found = core.voice(new Voice(name));
            voices.put(name, found);
        }
        String audience = JulParameters.audience(record);
        return audience.isEmpty() ? found : core.voice(new Voice(name).withAudiences(List.of(audience)));
    }

    private static String localised(LogRecord record) {
        if (record.getResourceBundle() != null && record.getMessage() != null) {
            try {
                return record.getResourceBundle().getString(record.getMessage());
            } catch (MissingResourceException | ClassCastException notThere) {
                return record.getMessage();
            }
        }
        return record.getMessage();
    }

    /** Does nothing: a record is safe when its call returns. */
    @Override
    public void flush() {}

    /** Does nothing: other handlers of this source may still be in use. */
    @Override
    public void close() {}

    /** Returns the number of records of this process that found no room. */
    public long lost() {
        return core.lost();
    }

    @Override
    public String toString() {
        return String.format(Locale.ROOT, "TampuHandler(%s)", core.settings().source());
    }
}

package org.tampu.log;

import java.io.IOException;
import java.time.Duration;
import java.util.List;
import org.tampu.internal.call.LogCore;
import org.tampu.internal.call.LogEvent;
import org.tampu.internal.call.Voice;

/**
 * Writes log records into memory that the host's node reads, also after this process was killed.
 *
 * <pre>{@code
 * Logger logger = Logger.open("CONTROL/DV01");
 * logger.info("antenna {} at az {}", "DV01", 269.9);
 * logger.at(Level.WARNING).data("elevation", 62.5).log("cable wrap");
 * }</pre>
 *
 * <p>A call costs about 100 ns and never waits for a hub. If the ring of a thread stays full for 200 us (20 ms from
 * Error on), the record is dropped, counted and reported in the log. Loggers are shared freely between threads.
 */
public final class Logger {
    private final LogCore core;
    private final Voice fields;
    private final LogCore.KnownVoice voice;
    private final int least;

    private Logger(LogCore core, Voice fields) {
        this.core = core;
        this.fields = fields;
        this.voice = core.voice(fields);
        Level level = core.settings().level();
        this.least = level == null ? Integer.MAX_VALUE : level.number();
    }

    /** Opens the logging of this process under a stable name, with the settings of the environment. */
    public static Logger open(String source) throws IOException {
        return open(LogSettings.fromEnvironment(source));
    }

    /** Opens the logging of this process. The first settings of a source count. */
    public static Logger open(LogSettings settings) throws IOException {
        return new Logger(LogCore.open(settings), new Voice(settings.source()));
    }

    /** Returns a logger of another name. */
    public Logger named(String name) {
        return with(fields.named(name));
    }

    /** Returns a logger for this component. */
    public Logger withSourceObject(String sourceObject) {
        return with(fields.withSourceObject(sourceObject));
    }

    /** Returns a logger for this context of its calls. */
    public Logger withContext(String context) {
        return with(fields.withContext(context));
    }

    /** Returns a logger for these audiences, as {@code Operator}; without any its records are for everybody. */
    public Logger withAudiences(String... audiences) {
        return with(fields.withAudiences(List.of(audiences)));
    }

    /** Returns a logger for this array. */
    public Logger withArray(String array) {
        return with(fields.withArray(array));
    }

    /** Returns a logger for this antenna. */
    public Logger withAntenna(String antenna) {
        return with(fields.withAntenna(antenna));
    }

    /** Returns a logger for this run or observation. */
    public Logger withRunId(String runId) {
        return with(fields.withRunId(runId));
    }

    private Logger with(Voice other) {
        return new Logger(core, other);
    }

    /** Returns whether records of this level are published. */
    public boolean isEnabled(Level level) {
        return level.number() >= least;
    }

    /**
     * Logs a message. Each <code>{}</code> stands for an argument; an exception as last argument that no place takes
     * becomes an error chain.
     */
    public void log(Level level, String message, Object... arguments) {
        if (level.number() >= least) {
            LogEvent event = LogCore.event();
            event.level = level.number();
            event.voice = voice;
            event.message = message;
            event.arguments = arguments;
            event.count = arguments.length;
            event.takeException();
            core.log(event);
        }
    }

    /** Begins a record with values beside its message. It is stored by {@link Entry#log}. */
    public Entry at(Level level) {
        return new Entry(core, voice, level, level.number() >= least);
    }

    /** Logs at the level Trace. */
    public void trace(String message, Object... arguments) {
        log(Level.TRACE, message, arguments);
    }

    /** Logs at the level Delouse. */
    public void delouse(String message, Object... arguments) {
        log(Level.DELOUSE, message, arguments);
    }

    /** Logs at the level Debug. */
    public void debug(String message, Object... arguments) {
        log(Level.DEBUG, message, arguments);
    }

    /** Logs at the level Info. */
    public void info(String message, Object... arguments) {
        log(Level.INFO, message, arguments);
    }

    /** Logs at the level Notice. */
    public void notice(String message, Object... arguments) {
        log(Level.NOTICE, message, arguments);
    }

    /** Logs at the level Warning. */
    public void warning(String message, Object... arguments) {
        log(Level.WARNING, message, arguments);
    }

    /** Logs at the level Error. */
    public void error(String message, Object... arguments) {
        log(Level.ERROR, message, arguments);
    }

    /** Logs at the level Critical. */
    public void critical(String message, Object... arguments) {
        log(Level.CRITICAL, message, arguments);
    }

    /** Logs at the level Alert. */
    public void alert(String message, Object... arguments) {
        log(Level.ALERT, message, arguments);
    }

    /** Logs at the level Emergency. */
    public void emergency(String message, Object... arguments) {
        log(Level.EMERGENCY, message, arguments);
    }

    /** Returns the number of records of this process that found no room. The log has a record about them as well. */
    public long lost() {
        return core.lost();
    }

    /**
     * Waits until everything logged so far is with a collector or in the node's spool; returns whether it is. Without
     * this call it arrives as well, also if the process ends or is killed.
     */
    public boolean flush(Duration timeout) {
        return core.flush(timeout.toNanos());
    }
}

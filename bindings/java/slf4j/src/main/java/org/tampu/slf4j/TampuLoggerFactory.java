package org.tampu.slf4j;

import java.io.IOException;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.ILoggerFactory;
import org.slf4j.Logger;
import org.slf4j.helpers.NOPLogger;
import org.slf4j.helpers.Reporter;
import org.tampu.internal.call.LogCore;
import org.tampu.internal.call.Voice;
import org.tampu.log.Level;
import org.tampu.log.LogSettings;

/** Makes the loggers of this process, one for each name. */
public final class TampuLoggerFactory implements ILoggerFactory {
    private static final int NEVER = Integer.MAX_VALUE;

    private final ConcurrentHashMap<String, Logger> loggers = new ConcurrentHashMap<>();
    private final TampuMdc mdc;
    private final LogCore core;

    TampuLoggerFactory(TampuMdc mdc) {
        this.mdc = mdc;
        LogCore opened = null;
        try {
            LogSettings settings = LogSettings.fromEnvironment(LogSettings.defaultSource());
            String locate = System.getProperty("tampu.locate", "Warning");
            opened = LogCore.open(settings.withLocate(locate.equalsIgnoreCase("off") ? null : Level.parse(locate)));
        } catch (IOException | IllegalArgumentException unusable) {
            // A program must run without its log. The one place to say so is standard error.
            Reporter.error("Tampu cannot take log records, all are dropped", unusable);
        }
        this.core = opened;
    }

    /** Makes a factory of its own, for programs that use another provider as well. */
    public TampuLoggerFactory() {
        this(new TampuMdc());
    }

    @Override
    public Logger getLogger(String name) {
        Logger found = loggers.get(name);
        return found != null ? found : loggers.computeIfAbsent(name, this::make);
    }

    private Logger make(String name) {
        return core == null ? NOPLogger.NOP_LOGGER : new TampuLogger(name, core, core.voice(new Voice(name)), mdc, least(name));
    }

    /** Returns the number of the least level of a logger: that of the nearest name above it. */
    private static int least(String name) {
        for (String above = name; !above.isEmpty(); above = above.substring(0, Math.max(0, above.lastIndexOf('.')))) {
            String level = System.getProperty("tampu.level." + above);
            if (level != null) {
                return number(level);
            }
        }
        String environment = System.getenv().getOrDefault("TAMPU_LOG_LEVEL", System.getenv().getOrDefault("ACS_LOG_CENTRAL", "Info"));
        return number(System.getProperty("tampu.level", environment));
    }

    private static int number(String level) {
        try {
            return level.strip().equalsIgnoreCase("off") ? NEVER : Level.parse(level).number();
        } catch (IllegalArgumentException unknown) {
            Reporter.error(unknown.getMessage() + "; Info is used");
            return Level.INFO.number();
        }
    }
}

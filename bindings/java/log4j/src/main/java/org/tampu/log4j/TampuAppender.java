package org.tampu.log4j;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.logging.log4j.Marker;
import org.apache.logging.log4j.core.Appender;
import org.apache.logging.log4j.core.Core;
import org.apache.logging.log4j.core.Filter;
import org.apache.logging.log4j.core.appender.AbstractAppender;
import org.apache.logging.log4j.core.config.Property;
import org.apache.logging.log4j.core.config.plugins.Plugin;
import org.apache.logging.log4j.core.config.plugins.PluginAttribute;
import org.apache.logging.log4j.core.config.plugins.PluginElement;
import org.apache.logging.log4j.core.config.plugins.PluginFactory;
import org.apache.logging.log4j.core.time.Instant;
import org.apache.logging.log4j.message.Message;
import org.apache.logging.log4j.message.ParameterizedMessage;
import org.apache.logging.log4j.message.ReusableParameterizedMessage;
import org.tampu.internal.call.LogCore;
import org.tampu.internal.call.LogEvent;
import org.tampu.internal.call.Voice;
import org.tampu.log.Level;
import org.tampu.log.LogSettings;

/**
 * Writes the events of Log4j 2 to Tampu.
 *
 * <pre>{@code
 * <Appenders><Tampu name="tampu" source="CONTROL/DV01"/></Appenders>
 * }</pre>
 *
 * <p>Values of the context (thread context map) become named values. A marker with the name of an audience sends the
 * record to it. Exceptions become error chains.
 */
@Plugin(name = "Tampu", category = Core.CATEGORY_NAME, elementType = Appender.ELEMENT_TYPE, printObject = true)
public final class TampuAppender extends AbstractAppender {
    private static final List<String> AUDIENCES = List.of("Operator", "Developer", "Sysadmin", "DBA", "SciLog");

    private final Map<String, LogCore.KnownVoice> voices = new ConcurrentHashMap<>();
    private final LogCore core;

    private TampuAppender(String name, Filter filter, LogCore core) {
        super(name, filter, null, true, Property.EMPTY_ARRAY);
        this.core = core;
    }

    /**
     * Makes an appender.
     *
     * @param name name in the configuration
     * @param source stable name of the process; without one the property {@code tampu.source}, else the main class
     * @param domain name of the installation; without one {@code TAMPU_DOMAIN}
     * @param locate level from which records get their place in the code, or {@code off}; without one {@code Warning}
     * @param filter filter of the configuration, or null
     */
    @PluginFactory
    public static TampuAppender create(
            @PluginAttribute("name") String name,
            @PluginAttribute("source") String source,
            @PluginAttribute("domain") String domain,
            @PluginAttribute("locate") String locate,
            @PluginElement("Filter") Filter filter) {
        try {
            LogSettings settings = LogSettings.fromEnvironment(source == null ? LogSettings.defaultSource() : source);
            settings = domain == null ? settings : settings.inDomain(domain);
            boolean never = locate != null && locate.equalsIgnoreCase("off");
            settings = settings.withLocate(never ? null : locate == null ? Level.WARNING : Level.parse(locate));
            return new TampuAppender(name == null ? "tampu" : name, filter, LogCore.open(settings));
        } catch (IOException | IllegalArgumentException unusable) {
            LOGGER.error("Tampu cannot take log records", unusable);
            return null;
        }
    }

    @Override
    @SuppressWarnings("deprecation")
    public void append(org.apache.logging.log4j.core.LogEvent logged) {
        LogEvent event = LogCore.event();
        event.level = number(logged.getLevel().intLevel());
        event.voice = voice(logged.getLoggerName());
        Instant time = logged.getInstant();
        event.time = time.getEpochSecond() * 1_000_000_000L + time.getNanoOfSecond();
        // Behind an asynchronous logger this is another thread.
        String thread = logged.getThreadName();
        event.thread = thread == null || thread.equals(Thread.currentThread().getName()) ? null : thread;
        Message message = logged.getMessage();
        if (message instanceof ReusableParameterizedMessage || message instanceof ParameterizedMessage) {
            event.message = message.getFormat();
            Object[] arguments = message.getParameters();
            if (arguments != null) {
                event.arguments = arguments;
                event.count = arguments.length;
            }
        } else {
            event.message = message.getFormattedMessage();
        }
        event.thrown = logged.getThrown();
        event.where = logged.isIncludeLocation() && logged.getSource() != null ? logged.getSource() : null;
        if (logged.getMarker() != null) {
            mark(event, logged.getMarker());
        }
        if (!logged.getContextData().isEmpty()) {
            logged.getContextData().forEach(event::data);
        }
        core.log(event);
    }

    private LogCore.KnownVoice voice(String name) {
        String known = name == null ? "" : name;
        LogCore.KnownVoice found = voices.get(known);
        return found != null ? found : voices.computeIfAbsent(known, each -> core.voice(new Voice(each)));
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
        if (level <= 100) {
            // Fatal.
            return Level.CRITICAL.number();
        } else if (level <= 200) {
            return Level.ERROR.number();
        } else if (level <= 300) {
            return Level.WARNING.number();
        } else if (level <= 400) {
            return Level.INFO.number();
        }
        return (level <= 500 ? Level.DEBUG : Level.TRACE).number();
    }
}

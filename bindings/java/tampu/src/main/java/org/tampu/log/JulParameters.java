package org.tampu.log;

import java.lang.reflect.Method;
import java.util.List;
import java.util.Map;
import java.util.logging.LogRecord;
import org.tampu.internal.call.LogCore;
import org.tampu.internal.call.LogEvent;
import org.tampu.internal.call.Voice;

/**
 * Parameters of a record of {@code java.util.logging}, with the habits of {@code alma.acs.logging}.
 *
 * <p>Parameters that the message names with <code>{0}</code> become part of it. Of the others, a map becomes named
 * values, a map with the key {@code isAcsPropertiesMap} becomes fields of the record, and anything else becomes a value
 * named {@code LoggedParameter}.
 */
final class JulParameters {
    /** The key of the map with fields of ACS. */
    private static final String ACS_MAP = "isAcsPropertiesMap";

    /** The way to ask for the audience of ACS's own records. */
    private static final ClassValue<Method> AUDIENCE = new ClassValue<>() {
        @Override
        protected Method computeValue(Class<?> type) {
            try {
                Method method = type == LogRecord.class ? null : type.getMethod("getAudience");
                return method != null && method.getReturnType() == String.class ? method : null;
            } catch (NoSuchMethodException | SecurityException none) {
                return null;
            }
        }
    };

    private JulParameters() {}

    /** Returns the audience of a record that has one, else an empty text. */
    static String audience(LogRecord record) {
        Method method = AUDIENCE.get(record.getClass());
        if (method == null) {
            return "";
        }
        try {
            return method.invoke(record) instanceof String audience ? audience : "";
        } catch (ReflectiveOperationException closed) {
            return "";
        }
    }

    static void take(LogCore core, LogEvent event, LogRecord record, Object[] parameters) {
        String message = event.message == null ? "" : event.message;
        if (message.indexOf('{') >= 0 && hasPlace(message)) {
            event.arguments = parameters;
            event.count = parameters.length;
        }
        for (int at = 0; at < parameters.length; at++) {
            Object parameter = parameters[at];
            if (parameter instanceof Map<?, ?> map) {
                if (map.containsKey(ACS_MAP)) {
                    takeFields(core, event, record, map);
                } else {
                    map.forEach((name, value) -> event.data(String.valueOf(name), value));
                }
            } else if (event.count == 0 || !message.contains("{" + at)) {
                event.data("LoggedParameter", parameter);
            }
        }
    }

    private static boolean hasPlace(String message) {
        for (int at = message.indexOf('{'); at >= 0 && at + 1 < message.length(); at = message.indexOf('{', at + 1)) {
            if (Character.isDigit(message.charAt(at + 1))) {
                return true;
            }
        }
        return false;
    }

    private static void takeFields(LogCore core, LogEvent event, LogRecord record, Map<?, ?> map) {
        LogEvent.Rare rare = new LogEvent.Rare();
        Voice fields = event.voice.fields();
        boolean any = false;
        int line = -1;
        for (var each : map.entrySet()) {
            String value = String.valueOf(each.getValue());
            boolean isRare = true;
            switch (String.valueOf(each.getKey())) {
                case "HostName" -> rare.host = value;
                case "ProcessName" -> rare.process = value;
                case "Uri" -> rare.uri = value;
                case "StackId" -> rare.stackId = value;
                case "StackLevel" -> rare.stackLevel = number(value);
                case "Priority" -> rare.priority = number(value);
                default -> isRare = false;
            }
            any |= isRare;
            switch (String.valueOf(each.getKey())) {
                case "ThreadName" -> event.thread = value;
                case "Line" -> line = number(value);
                case "SourceObject" -> fields = fields.withSourceObject(value);
                case "Context" -> fields = fields.withContext(value);
                case "Audience" -> fields = fields.withAudiences(List.of(value));
                case "Array" -> fields = fields.withArray(value);
                case "Antenna" -> fields = fields.withAntenna(value);
                case ACS_MAP -> { }
                default -> {
                    if (!isRare) {
                        event.data(String.valueOf(each.getKey()), each.getValue());
                    }
                }
            }
        }
        event.rare = any ? rare : null;
        event.voice = core.voice(fields);
        String type = record.getSourceClassName();
        if (type != null) {
            String routine = record.getSourceMethodName();
            event.where = new StackTraceElement(type, routine == null ? "" : routine, null, line);
        }
    }

    private static int number(String text) {
        try {
            return (int) Long.parseLong(text.strip());
        } catch (NumberFormatException none) {
            return -1;
        }
    }
}

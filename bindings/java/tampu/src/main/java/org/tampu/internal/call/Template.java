package org.tampu.internal.call;

import java.util.ArrayList;
import java.util.List;

/**
 * A message with places for arguments, parsed.
 *
 * <p>{@code pieces} are literal texts ({@link String}) and numbers of arguments ({@link Integer}).
 */
record Template(List<Object> pieces, int arguments) {
    /** Parses the places of slf4j, Logback and Log4j: <code>{}</code>, with a backslash before it for the braces themselves. */
    static Template ofBraces(String format) {
        List<Object> pieces = new ArrayList<>();
        StringBuilder text = new StringBuilder();
        int arguments = 0;
        int from = 0;
        for (int at = format.indexOf("{}"); at >= 0 && arguments < Payload.ARGUMENTS_MAX / 2; at = format.indexOf("{}", from)) {
            int slashes = 0;
            while (at - slashes - 1 >= from && format.charAt(at - slashes - 1) == '\\') {
                slashes++;
            }
            // Two backslashes are one before a place; one backslash makes the braces text.
            text.append(format, from, at - Math.min(slashes, 2)).append("\\".repeat(Math.max(0, Math.min(slashes, 2) - 1)));
            if (slashes == 1) {
                text.append("{}");
            } else {
                flush(text, pieces);
                pieces.add(arguments++);
            }
            from = at + 2;
        }
        text.append(format, from, format.length());
        flush(text, pieces);
        return new Template(List.copyOf(pieces), arguments);
    }

    /**
     * Parses the places of {@code java.util.logging}: <code>{0}</code>, and quotes as {@link java.text.MessageFormat}
     * has them. Returns null for places with a format, such as <code>{0,date}</code>, whose text only that class makes.
     */
    static Template ofNumbers(String format) {
        List<Object> pieces = new ArrayList<>();
        StringBuilder text = new StringBuilder();
        int arguments = 0;
        boolean quoted = false;
        for (int at = 0; at < format.length(); at++) {
            char character = format.charAt(at);
            if (character == '\'') {
                if (at + 1 < format.length() && format.charAt(at + 1) == '\'') {
                    text.append('\'');
                    at++;
                } else {
                    quoted = !quoted;
                }
            } else if (character == '{' && !quoted) {
                int end = format.indexOf('}', at);
                String number = end < 0 ? "" : format.substring(at + 1, end).strip();
                if (number.isEmpty() || number.length() > 2 || !number.chars().allMatch(Character::isDigit)
                        || Integer.parseInt(number) >= Payload.ARGUMENTS_MAX / 2) {
                    return null;
                }
                flush(text, pieces);
                pieces.add(Integer.valueOf(number));
                arguments = Math.max(arguments, Integer.parseInt(number) + 1);
                at = end;
            } else {
                text.append(character);
            }
        }
        flush(text, pieces);
        return new Template(List.copyOf(pieces), arguments);
    }

    private static void flush(StringBuilder text, List<Object> pieces) {
        if (!text.isEmpty()) {
            pieces.add(text.toString());
            text.setLength(0);
        }
    }

    /** Returns the message's text. */
    String render(Object[] arguments) {
        StringBuilder text = new StringBuilder();
        for (Object piece : pieces) {
            if (piece instanceof Integer index) {
                text.append(index < arguments.length ? Texts.of(arguments[index]) : "{}");
            } else {
                text.append(piece);
            }
        }
        return text.toString();
    }
}

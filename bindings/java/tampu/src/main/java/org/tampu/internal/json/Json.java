package org.tampu.internal.json;

import java.math.BigInteger;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * JSON as the gateway has it: objects are maps, lists are lists, numbers are {@link Long}, {@link BigInteger}
 * beyond it, or {@link Double}.
 *
 * <p>A reader of bytes from a network: depth and syntax are checked, and an error names the place.
 */
public final class Json {
    private static final int DEEPEST = 64;

    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    /**
     * Parses a document.
     *
     * @throws IllegalArgumentException with the place of the error
     */
    public static Object parse(String text) {
        Json json = new Json(text);
        Object value = json.value(0);
        json.blank();
        if (json.at < text.length()) {
            throw json.wrong("the end");
        }
        return value;
    }

    /** Parses an object. */
    @SuppressWarnings("unchecked")
    public static Map<String, Object> object(String text) {
        if (parse(text) instanceof Map<?, ?> map) {
            return (Map<String, Object>) map;
        }
        throw new IllegalArgumentException("not a JSON object");
    }

    /** Returns a member that is a text, or {@code otherwise}. */
    public static String text(Map<String, Object> object, String member, String otherwise) {
        return object.get(member) instanceof String text ? text : otherwise;
    }

    /** Returns a member that is a number or a decimal text, or {@code otherwise}. */
    public static long number(Map<String, Object> object, String member, long otherwise) {
        Object value = object.get(member);
        if (value instanceof Number number) {
            return number.longValue();
        }
        try {
            return value instanceof String text ? Long.parseUnsignedLong(text) : otherwise;
        } catch (NumberFormatException none) {
            return otherwise;
        }
    }

    private IllegalArgumentException wrong(String expected) {
        return new IllegalArgumentException("character " + at + " of a JSON text: expected " + expected);
    }

    private void blank() {
        while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
    }

    private char next() {
        if (at >= text.length()) {
            throw wrong("more");
        }
        return text.charAt(at++);
    }

    private void expect(String word) {
        if (!text.startsWith(word, at)) {
            throw wrong(word);
        }
        at += word.length();
    }

    private Object value(int depth) {
        if (depth > DEEPEST) {
            throw wrong("fewer levels");
        }
        blank();
        switch (at < text.length() ? text.charAt(at) : ' ') {
            case '{' -> {
                return members(depth);
            }
            case '[' -> {
                return elements(depth);
            }
            case '"' -> {
                return string();
            }
            case 't' -> {
                expect("true");
                return true;
            }
            case 'f' -> {
                expect("false");
                return false;
            }
            case 'n' -> {
                expect("null");
                return null;
            }
            default -> {
                return number();
            }
        }
    }

    private Map<String, Object> members(int depth) {
        Map<String, Object> map = new LinkedHashMap<>();
        at++;
        blank();
        if (at < text.length() && text.charAt(at) == '}') {
            at++;
            return map;
        }
        while (true) {
            blank();
            if (at >= text.length() || text.charAt(at) != '"') {
                throw wrong("a name");
            }
            String name = string();
            blank();
            expect(":");
            map.put(name, value(depth + 1));
            blank();
            char end = next();
            if (end == '}') {
                return map;
            } else if (end != ',') {
                throw wrong("',' or '}'");
            }
        }
    }

    private List<Object> elements(int depth) {
        List<Object> list = new ArrayList<>();
        at++;
        blank();
        if (at < text.length() && text.charAt(at) == ']') {
            at++;
            return list;
        }
        while (true) {
            list.add(value(depth + 1));
            blank();
            char end = next();
            if (end == ']') {
                return list;
            } else if (end != ',') {
                throw wrong("',' or ']'");
            }
        }
    }

    private String string() {
        StringBuilder out = new StringBuilder();
        at++;
        for (char character = next(); character != '"'; character = next()) {
            if (character != '\\') {
                out.append(character);
                continue;
            }
            char escaped = next();
            switch (escaped) {
                case 'n' -> out.append('\n');
                case 't' -> out.append('\t');
                case 'r' -> out.append('\r');
                case 'b' -> out.append('\b');
                case 'f' -> out.append('\f');
                case '"', '\\', '/' -> out.append(escaped);
                case 'u' -> {
                    if (at + 4 > text.length()) {
                        throw wrong("four digits");
                    }
                    try {
                        out.append((char) Integer.parseInt(text.substring(at, at + 4), 16));
                    } catch (NumberFormatException none) {
                        throw wrong("four hexadecimal digits");
                    }
                    at += 4;
                }
                default -> throw wrong("an escape");
            }
        }
        return out.toString();
    }

    private Number number() {
        int begin = at;
        while (at < text.length() && "+-.eE0123456789".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        String digits = text.substring(begin, at);
        try {
            if (digits.chars().allMatch(each -> each == '-' || each >= '0' && each <= '9')) {
                // A u64 may be larger than a long. No number of ours is longer than that.
                return digits.length() < 19 || digits.length() > 40 ? (Number) Long.parseLong(digits) : narrow(new BigInteger(digits));
            }
            return Double.parseDouble(digits);
        } catch (NumberFormatException none) {
            at = begin;
            throw wrong("a value");
        }
    }

    private static Number narrow(BigInteger number) {
        return number.bitLength() < 64 ? (Number) number.longValue() : number;
    }

    /** Writes a value of maps, lists, texts, numbers, booleans and null. */
    public static String write(Object value) {
        StringBuilder out = new StringBuilder();
        put(out, value);
        return out.toString();
    }

    private static void put(StringBuilder out, Object value) {
        if (value instanceof Map<?, ?> map) {
            out.append('{');
            String comma = "";
            for (var member : map.entrySet()) {
                out.append(comma);
                quote(out, String.valueOf(member.getKey()));
                out.append(':');
                put(out, member.getValue());
                comma = ",";
            }
            out.append('}');
        } else if (value instanceof Iterable<?> list) {
            out.append('[');
            String comma = "";
            for (Object element : list) {
                out.append(comma);
                put(out, element);
                comma = ",";
            }
            out.append(']');
        } else if (value instanceof Double number && (number.isNaN() || number.isInfinite())) {
            out.append("null");
        } else if (value == null || value instanceof Number || value instanceof Boolean) {
            out.append(value);
        } else {
            quote(out, value.toString());
        }
    }

    private static void quote(StringBuilder out, String text) {
        out.append('"');
        for (int at = 0; at < text.length(); at++) {
            char character = text.charAt(at);
            if (character == '"' || character == '\\') {
                out.append('\\').append(character);
            } else if (character < ' ') {
                out.append(String.format("\\u%04x", (int) character));
            } else {
                out.append(character);
            }
        }
        out.append('"');
    }
}

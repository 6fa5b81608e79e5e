package org.tampu.slf4j;

import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.Map;
import org.slf4j.helpers.ThreadLocalMapOfStacks;
import org.slf4j.spi.MDCAdapter;

/**
 * The mapped diagnostic context of each thread.
 *
 * <p>A change copies the names and values, so a log call reads them without a copy.
 */
final class TampuMdc implements MDCAdapter {
    /** Names and values by turns. */
    private static final String[] EMPTY = {};

    private final ThreadLocal<String[]> context = ThreadLocal.withInitial(() -> EMPTY);
    private final ThreadLocalMapOfStacks stacks = new ThreadLocalMapOfStacks();

    /** Returns names and values by turns, which never change. */
    String[] pairs() {
        return context.get();
    }

    @Override
    public void put(String key, String value) {
        String[] before = context.get();
        int at = find(before, key);
        String[] after = Arrays.copyOf(before, at < 0 ? before.length + 2 : before.length);
        at = at < 0 ? before.length : at;
        after[at] = key;
        after[at + 1] = value;
        context.set(after);
    }

    @Override
    public String get(String key) {
        String[] pairs = context.get();
        int at = find(pairs, key);
        return at < 0 ? null : pairs[at + 1];
    }

    private static int find(String[] pairs, String key) {
        for (int at = 0; at < pairs.length; at += 2) {
            if (pairs[at].equals(key)) {
                return at;
            }
        }
        return -1;
    }

    @Override
    public void remove(String key) {
        String[] before = context.get();
        int at = find(before, key);
        if (at >= 0) {
            String[] after = Arrays.copyOf(before, before.length - 2);
            System.arraycopy(before, at + 2, after, at, before.length - at - 2);
            context.set(after);
        }
    }

    @Override
    public void clear() {
        context.remove();
    }

    @Override
    public Map<String, String> getCopyOfContextMap() {
        Map<String, String> map = new HashMap<>();
        String[] pairs = context.get();
        for (int at = 0; at < pairs.length; at += 2) {
            map.put(pairs[at], pairs[at + 1]);
        }
        return map;
    }

    @Override
    public void setContextMap(Map<String, String> map) {
        clear();
        if (map != null) {
            map.forEach(this::put);
        }
    }

    @Override
    public void pushByKey(String key, String value) {
        stacks.pushByKey(key, value);
    }

    @Override
    public String popByKey(String key) {
        return stacks.popByKey(key);
    }

    @Override
    public Deque<String> getCopyOfDequeByKey(String key) {
        return stacks.getCopyOfDequeByKey(key);
    }

    @Override
    public void clearDequeByKey(String key) {
        stacks.clearDequeByKey(key);
    }
}

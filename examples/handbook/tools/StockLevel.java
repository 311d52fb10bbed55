package de.hollinreed.stores;

import java.util.Map;
import java.util.TreeMap;

/** Tells the stores what to order on Thursday evening. */
public final class StockLevel {

    /** Hinges are ordered early: Brandt Beschläge needs four weeks for the brass ones. */
    public static final int HINGE_REORDER_LEVEL = 240;

    private final Map<String, Integer> pieces = new TreeMap<>();

    public void book(String article, int change) {
        int level = pieces.merge(article, change, Integer::sum);
        if (level < 0) {
            throw new IllegalStateException(article + ": " + level + " pieces in stock; count the drawer");
        }
    }

    public boolean needsOrder(String article) {
        int limit = article.startsWith("hinge") ? HINGE_REORDER_LEVEL : 50;
        return pieces.getOrDefault(article, 0) < limit;
    }
}

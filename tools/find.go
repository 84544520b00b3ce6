package tools

import "context"

// Search implements ToolCatalog.
func (c *catalog) Search(ctx context.Context, query string, tags []string, limit int) []Tool {
	if c.search == nil || limit <= 0 {
		return nil
	}
	snap := c.Snapshot()
	if direct, ok := c.search.(VisibleSearcher); ok {
		v := snap.Visible(FilterFrom(ctx))
		names, err := direct.SearchVisible(ctx, v, query, tags, limit)
		if err != nil {
			c.logger.WarnContext(ctx, "tool search failed", "error", err)
		}
		return v.named(names, limit)
	}
	if err := c.syncSearch(ctx, snap); err != nil {
		c.logger.WarnContext(ctx, "tool search index is behind", "error", err)
	}
	visible := snap.Visible(FilterFrom(ctx))
	for ask := limit; ; ask *= 2 {
		found, err := c.search.Search(ctx, query, tags, ask)
		if err != nil {
			c.logger.WarnContext(ctx, "tool search failed", "error", err)
			return nil
		}
		hits := keepVisible(visible, found, limit)
		if len(hits) == limit || len(found) < ask {
			return hits
		}
	}
}

// named returns copies of the tools of those names that are visible.
func (v *VisibleSet) named(names []string, limit int) []Tool {
	hits := make([]*binding, 0, min(len(names), limit))
	for _, name := range names {
		if i, ok := v.find(name); ok && len(hits) < limit {
			hits = append(hits, v.list[i])
		}
	}
	return copyTools(hits)
}

func keepVisible(v *VisibleSet, found []Tool, limit int) []Tool {
	var hits []*binding
	for _, t := range found {
		if i, ok := v.find(t.Name); ok && len(hits) < limit {
			hits = append(hits, v.list[i])
		}
	}
	return copyTools(hits)
}

// syncSearch brings the index up to the snapshot.
func (c *catalog) syncSearch(ctx context.Context, s *Snapshot) error {
	c.searchMu.Lock()
	defer c.searchMu.Unlock()
	if c.synced >= s.generation {
		return nil
	}
	if err := c.search.Sync(ctx, copyTools(s.sorted)); err != nil {
		return err
	}
	c.synced = s.generation
	return nil
}

// hipGraph*: whole graphs. Nodes added by hand are in graph_node_api.cc.
#include <algorithm>
#include <cstdio>

#include "emulator/hip/api_call.h"
#include "emulator/hip/graph.h"

namespace flydsl::emu::hip {
namespace {

hipError_t instantiate(hipGraphExec_t *exec_handle, hipGraph_t handle, char *log,
                       size_t log_bytes) {
  if (log != nullptr && log_bytes != 0) *log = 0;
  if (exec_handle == nullptr) return fail(hipErrorInvalidValue, "the result is null");
  hipError_t error = hipSuccess;
  std::shared_ptr<GraphExec> exec = instantiated(handle, &error);
  if (!exec) {
    if (log != nullptr && log_bytes != 0) std::snprintf(log, log_bytes, "%s", last_explanation());
    return error;
  }
  *exec_handle =
      static_cast<hipGraphExec_t>(const_cast<void *>(graph_execs().add(std::move(exec))));
  return hipSuccess;
}

hipError_t launch(hipGraphExec_t handle, hipStream_t stream_handle) {
  hipError_t error = hipSuccess;
  const std::shared_ptr<GraphExec> exec = graph_exec_or_fail(handle, &error);
  if (!exec) return error;
  const std::shared_ptr<Stream> stream = stream_or_fail(stream_handle, &error);
  if (!stream) return error;
  Work work;
  work.type = hipGraphNodeTypeGraph;  // should the stream be captured itself
  std::lock_guard<std::mutex> lock(exec->mutex);
  work.run = [works = exec->works] {
    hipError_t result = hipSuccess;
    for (const Work &node : *works) {
      result = node.run();
      if (result != hipSuccess) break;
    }
    return result;
  };
  return stream->submit(std::move(work));
}

// HIP's way of returning lists: the count alone when there is no room given; else up to *count
// entries, the rest of them null.
template <typename Handle>
hipError_t give(const std::vector<GraphNode *> &list, Handle *results, size_t *count) {
  if (results != nullptr)
    for (size_t i = 0; i < *count; ++i)
      results[i] = i < list.size() ? reinterpret_cast<Handle>(list[i]) : nullptr;
  if (results == nullptr || *count > list.size()) *count = list.size();
  return hipSuccess;
}

hipError_t get_nodes(hipGraph_t handle, hipGraphNode_t *results, size_t *count, bool roots_only) {
  if (count == nullptr) return fail(hipErrorInvalidValue, "the count is null");
  hipError_t error = hipSuccess;
  const std::shared_ptr<Graph> graph = graph_or_fail(handle, &error);
  if (!graph) return error;
  std::lock_guard<std::mutex> lock(graph->mutex);
  std::vector<GraphNode *> list;
  for (const auto &node : graph->nodes)
    if (!roots_only || node->after.empty()) list.push_back(node.get());
  return give(list, results, count);
}

std::shared_ptr<GraphNode> node_or_fail(hipGraphNode_t handle, hipError_t *error) {
  std::shared_ptr<GraphNode> node = graph_nodes().find(handle);
  if (!node)
    *error =
        fail(hipErrorInvalidValue, "graph node %p does not exist", static_cast<void *>(handle));
  return node;
}

}  // namespace
}  // namespace flydsl::emu::hip

using namespace flydsl::emu::hip;

FLYDSL_EMU_EXPORT hipError_t hipGraphCreate(hipGraph_t *graph, unsigned flags) {
  return api_call([&] {
    if (graph == nullptr || flags != 0)
      return fail(hipErrorInvalidValue, "graph is null or flags are not 0");
    *graph = static_cast<hipGraph_t>(const_cast<void *>(graphs().add(std::make_shared<Graph>())));
    return hipSuccess;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipGraphDestroy(hipGraph_t handle) {
  return api_call([&] {
    hipError_t error = hipSuccess;
    const std::shared_ptr<Graph> graph = graph_or_fail(handle, &error);
    if (!graph) return error;
    graphs().remove(handle);
    std::lock_guard<std::mutex> lock(graph->mutex);
    for (const auto &node : graph->nodes) graph_nodes().remove(node.get());
    return hipSuccess;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipGraphInstantiate(hipGraphExec_t *exec, hipGraph_t graph,
                                                 hipGraphNode_t *error_node, char *log,
                                                 size_t log_bytes) {
  return api_call([&] {
    if (error_node != nullptr) *error_node = nullptr;
    return instantiate(exec, graph, log, log_bytes);
  });
}

FLYDSL_EMU_EXPORT hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t *exec, hipGraph_t graph,
                                                          unsigned long long) {
  return api_call([&] { return instantiate(exec, graph, nullptr, 0); });
}

FLYDSL_EMU_EXPORT hipError_t hipGraphLaunch(hipGraphExec_t exec, hipStream_t stream) {
  return api_call([&] { return launch(exec, stream); });
}

FLYDSL_EMU_EXPORT hipError_t hipGraphUpload(hipGraphExec_t exec, hipStream_t stream) {
  return api_call([&] {
    hipError_t error = hipSuccess;
    if (graph_exec_or_fail(exec, &error)) stream_or_fail(stream, &error);
    return error;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipGraphExecDestroy(hipGraphExec_t exec) {
  return api_call([&] {
    if (graph_execs().remove(exec)) return hipSuccess;
    return fail(hipErrorInvalidValue, "executable graph %p does not exist",
                static_cast<void *>(exec));
  });
}

FLYDSL_EMU_EXPORT hipError_t hipGraphGetNodes(hipGraph_t graph, hipGraphNode_t *nodes,
                                              size_t *count) {
  return api_call([&] { return get_nodes(graph, nodes, count, false); });
}

FLYDSL_EMU_EXPORT hipError_t hipGraphGetRootNodes(hipGraph_t graph, hipGraphNode_t *nodes,
                                                  size_t *count) {
  return api_call([&] { return get_nodes(graph, nodes, count, true); });
}

FLYDSL_EMU_EXPORT hipError_t hipGraphGetEdges(hipGraph_t handle, hipGraphNode_t *from,
                                              hipGraphNode_t *to, size_t *count) {
  return api_call([&] {
    if (count == nullptr || (from == nullptr) != (to == nullptr))
      return fail(hipErrorInvalidValue, "the count or one of the lists is null");
    hipError_t error = hipSuccess;
    const std::shared_ptr<Graph> graph = graph_or_fail(handle, &error);
    if (!graph) return error;
    std::lock_guard<std::mutex> lock(graph->mutex);
    std::vector<GraphNode *> firsts, seconds;
    for (const auto &node : graph->nodes)
      for (GraphNode *earlier : node->after) {
        firsts.push_back(earlier);
        seconds.push_back(node.get());
      }
    size_t again = *count;
    give(seconds, to, &again);
    return give(firsts, from, count);
  });
}

FLYDSL_EMU_EXPORT hipError_t hipGraphNodeGetType(hipGraphNode_t handle, hipGraphNodeType *type) {
  return api_call([&] {
    if (type == nullptr) return fail(hipErrorInvalidValue, "type is null");
    hipError_t error = hipSuccess;
    const std::shared_ptr<GraphNode> node = node_or_fail(handle, &error);
    if (node) *type = node->work.type;
    return error;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipGraphNodeGetDependencies(hipGraphNode_t handle,
                                                         hipGraphNode_t *nodes, size_t *count) {
  return api_call([&] {
    if (count == nullptr) return fail(hipErrorInvalidValue, "the count is null");
    hipError_t error = hipSuccess;
    const std::shared_ptr<GraphNode> node = node_or_fail(handle, &error);
    return node ? give(node->after, nodes, count) : error;
  });
}
